/**
 * The data of `bench:everyday`: per language, facts with plain questions, follow-ups that need the message before,
 * small talk that must recall nothing, and similar talk to hide the facts in. Every second entry is held out: measured,
 * but never used for tuning.
 */
export interface Language {
  name: string;
  /** A statement, and questions that it answers. */
  facts: [fact: string, ...questions: string[]][];
  /** A fact, the question and answer just before, and a follow-up question about the fact. */
  followUps: [fact: string, asked: string, answered: string, question: string][];
  smallTalk: string[];
  /** A statement, and a much later remark that is no question but should still recall it. */
  remarks: [fact: string, remark: string][];
  /** Sentences with the placeholders `{who}`, `{what}` and `{when}`. */
  filler: string[];
  who: string[];
  /** Topics similar to the facts, so that they get in the way; `other` topics are not. */
  what: string[];
  other: string[];
  when: string[];
}

const split = (text: string) => text.split('|');

export const LANGUAGES: Language[] = [
  {
    name: 'English',
    facts: [
      ['Our dog Rex chewed up the sofa again.', 'What is my dog called?', 'remind me what our dog is called'],
      [
        'I have the dentist on Tuesday the 14th at half past three.',
        'Remind me of the dentist please',
        'When do I have to go to the dentist?',
      ],
      [
        'My sister Clara moved to Bergen last winter.',
        'Where does my sister live?',
        'what city did Clara move to?',
      ],
      [
        'The wifi password for the cabin is bluewhale42.',
        "What's the wifi password?",
        'wifi password of the cabin?',
      ],
      [
        "I'm allergic to hazelnuts, since I was little.",
        'What am I allergic to?',
        'do you remember my allergy?',
      ],
      ['Mum turns sixty on the third of May.', "When is my mother's birthday?", 'How old will mum be?'],
      [
        'We parked the car on level C of the garage by the station.',
        'Where did I park the car?',
        'where is the car parked',
      ],
      ['My shoe size is 43, in boots 44.', "What's my shoe size?", 'which size of boots do I take?'],
      [
        'I start at the bakery at four in the morning from Monday on.',
        'When do I start at the bakery?',
        'What time does my job at the bakery begin?',
      ],
      [
        'The landlord is Mr Hollis, he only answers the phone before noon.',
        "What was the landlord's name again?",
        'who is our landlord',
      ],
      [
        'Dad takes two of the white heart pills in the evening.',
        'Which pills does my father take?',
        'how many pills does dad take in the evening?',
      ],
      ['I lent my drill to Tom from the third floor.', 'Who has my drill?', 'who did I lend the drill to?'],
      [
        'Our wedding anniversary is on 9 September, never forget it again!',
        'When is our anniversary?',
        'whens our aniversary',
      ],
      [
        'The plumber wanted 180 euros for the boiler.',
        'How much did the plumber ask for?',
        'What did the boiler repair cost?',
      ],
      [
        'I finished the Ferrante novel and want to read Sebald next.',
        'Which book did I want to read next?',
        'what was I going to read after Ferrante?',
      ],
      [
        'The spare key is under the blue flowerpot.',
        'Where is the spare key?',
        'where do I keep the spare keys',
      ],
    ],
    followUps: [
      [
        'Agnes lives in Turku now, in a wooden house near the river.',
        'Do you remember Agnes?',
        'Of course, you played in the orchestra with Agnes.',
        'and where does she live?',
      ],
      [
        'The old Volvo needs a new battery before the winter.',
        'Is the Volvo still running?',
        'The Volvo was fine when you last drove it.',
        'What did it need again?',
      ],
      [
        'Grandpa Otto is in hospital, room 312.',
        'Grandpa Otto sounded weak today',
        'I am sorry to hear that about Otto.',
        'which room is he in?',
      ],
      [
        'The choir sings on Thursdays in the old brewery.',
        'I think I will join the choir',
        'Singing in the choir would do you good!',
        'when do they meet?',
      ],
    ],
    smallTalk: split(
      "good night :)|shall we cook spaghetti|good morning!|haha that's funny|how are you today?|thanks, that helps a lot|I'm so tired, what a day|let's watch a film tonight|did you sleep well?|ok, see you later|it's raining again|what shall we eat tonight?|tell me a joke|you are the best|I'm going for a walk now|do you want some coffee?|what are you up to?|nice weather today, isn't it|tell me something funny|let's play a word game|should we go to the market later?|I'm bored|you always make me laugh|do you like board games?|coffee first, then we talk|off to bed now, sleep tight|just got home from work, feet are killing me|my tea went cold again|finally friday!|the sun is out, lovely|dinner was delicious|I can't stop yawning|this song is stuck in my head|what a boring meeting that was|my phone is almost empty|I need a shower first|monday mornings are the worst|that made my day|I overslept this morning|let me grab a snack real quick|brb, someone's at the door|you won't believe how hungry I am|the bus was late again|it's freezing outside|I'm on the sofa with a blanket|had a long day, my head hurts|just woke up|can't sleep, too hot|weekend at last|guess I'll make some soup|that was a good laugh|I should really clean the kitchen|wish me luck|sweet dreams|time for lunch",
    ),
    remarks: [
      ['Clara from the orchestra broke her arm skating.', "I'm visiting Clara tomorrow"],
      ['Uncle Reginald never forgave me for the boat.', 'Just got a long letter from Reginald'],
      ['The beehives on the roof belong to old Mrs Amsel.', 'The beehives were humming all afternoon'],
    ],
    filler: split(
      'Saw {who} with {what} {when}|{who} asked about {what} {when}|We talked about {what} with {who}|{when} I was thinking about {what}|{who} is coming over {when}|No time for {what} {when}|{who} called and told me about {what}|I dreamt of {what}, strange|Can you believe it, {who} forgot {what}|{what} was great {when}|I cooked with {who} {when}, spaghetti and salad|it rained {when}, so we stayed in with {who}|slept badly, {who} was loud {when}|Good night, see you {when}|a walk with {who} {when}, nice weather|{who} lives at the other end of town|{who} needed help {when}',
    ),
    who: split(
      "the neighbour|my boss|Peter|my cousin|a colleague|Maria|the kids|an old friend|Julia's brother|the woman from the shop",
    ),
    what: split(
      "the neighbour's dog|a dentist on television|his sister|a password that was too long|nuts and chocolate|a birthday cake|the car wash|new shoes|the bakery round the corner|rent and landlords|pills and doctors|his drill|somebody's wedding|a plumber|a crime novel|lost keys|the choir on the radio|a hospital series|house prices|cooking",
    ),
    other: split(
      "the garden|the football match|a film about space|the new tram line|old photos|the weather|a long meeting|the market|his guitar|a board game|the news|holidays by the sea|coffee|the train being late|a podcast|the laundry|somebody's tattoo|the election|a museum|bicycles",
    ),
    when: split('yesterday|last week|this morning|on Sunday|tonight|at lunch|in the evening|the other day'),
  },
  {
    name: 'German',
    facts: [
      [
        'Unser Kater Moritz hat schon wieder die Vorhänge zerrissen.',
        'Wie heißt mein Kater?',
        'wie hieß nochmal unser Kater',
      ],
      [
        'Am 14. habe ich um halb vier einen Zahnarzttermin.',
        'Wann muss ich zum Zahnarzt?',
        'Erinnere mich bitte an den Zahnarzttermin',
      ],
      [
        'Meine Schwester ist im Winter nach Graz gezogen.',
        'Wo wohnt meine Schwester?',
        'In welcher Stadt lebt meine Schwester jetzt?',
      ],
      [
        'Das WLAN-Passwort in der Hütte ist blauwal42.',
        'Wie lautet das WLAN-Passwort?',
        'passwort vom wlan in der hütte?',
      ],
      [
        'Ich vertrage keine Haselnüsse, da schwillt mir der Hals zu.',
        'Welche Nüsse vertrage ich nicht?',
        'Was war das mit den Haselnüssen?',
      ],
      ['Mama wird am 3. Mai sechzig.', 'Wann hat Mama Geburtstag?', 'Wie alt wird Mama?'],
      [
        'Das Auto steht auf Deck C im Parkhaus am Bahnhof.',
        'Wo steht mein Auto?',
        'Auf welchem Deck habe ich das Auto geparkt?',
      ],
      [
        'Meine Schuhgröße ist 43, bei Stiefeln 44.',
        'Welche Schuhgröße habe ich?',
        'weißt du noch meine Schuhgrösse',
      ],
      [
        'Der Vermieter heißt Herr Hollmann und geht nur vormittags ans Telefon.',
        'Wie heißt unser Vermieter?',
        'Wann erreiche ich den Vermieter?',
      ],
      [
        'Die Bohrmaschine habe ich Tom aus dem dritten Stock geliehen.',
        'Wer hat meine Bohrmaschine?',
        'Wem habe ich die Bohrmaschine geliehen?',
      ],
      [
        'Der Klempner wollte 180 Euro für die Therme.',
        'Was hat der Klempner verlangt?',
        'wie viel kostet die Reparatur der Therme',
      ],
      [
        'Der Ersatzschlüssel liegt unter dem blauen Blumentopf.',
        'Wo ist der Ersatzschlüssel?',
        'Wo liegt der Schlüssel für den Notfall, der Ersatzschlüssel?',
      ],
    ],
    followUps: [
      [
        'Agnes wohnt jetzt in Turku in einem Holzhaus am Fluss.',
        'Erinnerst du dich an Agnes?',
        'Klar, mit Agnes hast du im Orchester gespielt.',
        'und wo wohnt sie jetzt?',
      ],
      [
        'Der alte Volvo braucht vor dem Winter eine neue Batterie.',
        'Fährt der Volvo noch?',
        'Der Volvo lief beim letzten Mal noch gut.',
        'Was brauchte er nochmal?',
      ],
    ],
    smallTalk: split(
      'gute Nacht :)|sollen wir Spaghetti kochen|guten Morgen!|haha, sehr witzig|wie geht es dir heute?|danke, das hilft mir sehr|bin total müde, was für ein Tag|lass uns heute Abend einen Film schauen|hast du gut geschlafen?|ok, bis später|es regnet schon wieder|was wollen wir heute essen?|erzähl mir einen Witz|magst du einen Kaffee?|was essen wir heute?|erzähl mir was Lustiges|spielen wir ein Brettspiel?|mir ist langweilig|lass uns auf den Markt gehen|ab ins Bett, schlaf gut|endlich Feierabend|der Kaffee ist schon wieder kalt|mir tun die Füße weh|die Sonne scheint, herrlich|das Essen war lecker|ich muss noch duschen|endlich Wochenende!|habe heute verschlafen|der Bus kam wieder zu spät|ich sitze auf dem Sofa mit einer Decke|drück mir die Daumen|so kalt draußen heute',
    ),
    remarks: [
      ['Friederike hat im Juni ihre Prüfung geschafft.', 'Morgen treffe ich Friederike'],
      ['Das Cello hat mir Tante Walburga vererbt.', 'Ich habe heute wieder auf dem Cello gespielt'],
    ],
    filler: split(
      '{when} {who} mit {what} gesehen|{who} hat {when} nach {what} gefragt|Wir haben mit {who} über {what} geredet|{when} musste ich an {what} denken|{who} kommt {when} vorbei|Keine Zeit für {what} {when}|{who} rief an und erzählte von {what}|Ich habe von {what} geträumt|Stell dir vor, {who} hat {what} vergessen|{when} war es schön|mit {who} gekocht {when}, Spaghetti und Salat|es hat geregnet {when}, wir blieben drin|schlecht geschlafen, {who} war laut {when}|Gute Nacht, bis {when}|{when} ein Film mit {who}|{who} wohnt am anderen Ende der Stadt|{who} brauchte {when} Hilfe',
    ),
    who: split(
      'der Nachbar|mein Chef|Peter|meine Cousine|eine Kollegin|Maria|die Kinder|ein alter Freund|der Bruder von Julia|die Frau aus dem Laden',
    ),
    what: split(
      'dem Kater des Nachbarn|einem Zahnarzt im Fernsehen|seiner Schwester|einem zu langen Passwort|Nüssen und Schokolade|einer Geburtstagstorte|der Autowäsche|neuen Schuhen|der Miete|einer Bohrmaschine|einem Klempner|verlorenen Schlüsseln|dem Wohnen auf dem Land|einer neuen Stadt|dem Telefon|Autos|Mama und Papa',
    ),
    other: split(
      'dem Garten|dem Fußballspiel|einem Film über das All|der neuen Straßenbahn|alten Fotos|dem Wetter|einer langen Sitzung|dem Markt|seiner Gitarre|einem Brettspiel|den Nachrichten|Urlaub am Meer|Kaffee|dem verspäteten Zug|einem Podcast|der Wäsche|der Wahl|einem Museum|Fahrrädern',
    ),
    when: split('gestern|letzte Woche|heute früh|am Sonntag|heute Abend|mittags|neulich'),
  },
  {
    name: 'Spanish',
    facts: [
      [
        'Nuestra perra Luna se ha comido otra vez el sofá.',
        '¿Cómo se llama mi perra?',
        'recuérdame cómo se llama nuestra perra',
      ],
      [
        'Tengo cita con el dentista el martes 14 a las tres y media.',
        'Recuérdame lo del dentista, por favor',
        '¿Cuándo tengo que ir al dentista?',
      ],
      [
        'Mi hermana se mudó a Bilbao el invierno pasado.',
        '¿Dónde vive mi hermana?',
        '¿A qué ciudad se mudó mi hermana?',
      ],
      [
        'La contraseña del wifi de la cabaña es ballena42.',
        '¿Cuál es la contraseña del wifi?',
        'la contraseña de la cabaña?',
      ],
      ['Soy alérgico a las avellanas desde pequeño.', '¿A qué soy alérgico?', '¿Te acuerdas de mi alergia?'],
      [
        'Mamá cumple sesenta años el 3 de mayo.',
        '¿Cuándo cumple años mamá?',
        '¿Cuántos años cumple mi mamá?',
      ],
      [
        'Aparcamos el coche en la planta C del garaje de la estación.',
        '¿Dónde aparqué el coche?',
        '¿En qué planta está el coche?',
      ],
      ['Mi talla de zapato es la 43.', '¿Cuál es mi talla de zapatos?', 'qué talla de zapato uso'],
      [
        'El casero se llama señor Ibarra y solo contesta por la mañana.',
        '¿Cómo se llama el casero?',
        '¿Quién es nuestro casero?',
      ],
      [
        'Le presté el taladro a Tomás, el del tercero.',
        '¿Quién tiene mi taladro?',
        '¿A quién le presté el taladro?',
      ],
      [
        'El fontanero pidió 180 euros por la caldera.',
        '¿Cuánto pidió el fontanero?',
        '¿Cuánto costó arreglar la caldera?',
      ],
      [
        'La llave de repuesto está debajo de la maceta azul.',
        '¿Dónde está la llave de repuesto?',
        'dónde guardo las llaves de repuesto',
      ],
    ],
    followUps: [
      [
        'Agnes vive ahora en Turku, en una casa de madera junto al río.',
        '¿Te acuerdas de Agnes?',
        'Claro, tocabas con Agnes en la orquesta.',
        '¿y dónde vive ella ahora?',
      ],
      [
        'El viejo Volvo necesita una batería nueva antes del invierno.',
        '¿Anda todavía el Volvo?',
        'El Volvo andaba bien la última vez.',
        '¿Qué era lo que necesitaba?',
      ],
    ],
    smallTalk: split(
      'buenas noches :)|¿cocinamos espaguetis?|¡buenos días!|jaja qué gracioso|¿cómo estás hoy?|gracias, me ayuda mucho|qué cansado estoy, vaya día|vamos a ver una película esta noche|¿has dormido bien?|vale, hasta luego|está lloviendo otra vez|¿qué cenamos hoy?|cuéntame un chiste|¿quieres un café?|¿jugamos a un juego?|estoy aburrido|vamos al mercado|cuéntame algo gracioso|me voy a la cama, que descanses|por fin viernes|el café se ha enfriado|qué hambre tengo|hace sol, qué bonito|la cena estaba muy rica|me duele la cabeza|el autobús ha llegado tarde otra vez|acabo de despertarme|deséame suerte',
    ),
    remarks: [
      ['Rosalía dejó su trabajo en el hospital.', 'mañana como con Rosalía'],
      ['El acordeón era de mi bisabuelo.', 'he vuelto a tocar el acordeón'],
    ],
    filler: split(
      'Vi a {who} con {what} {when}|{who} preguntó por {what} {when}|Hablamos de {what} con {who}|{when} pensaba en {what}|{who} viene a casa {when}|Sin tiempo para {what} {when}|{who} llamó y me habló de {what}|Soñé con {what}, qué raro|No te lo crees, {who} olvidó {what}|{when} estuvo muy bien|cociné con {who} {when}, espaguetis y ensalada|llovió {when}, nos quedamos dentro|dormí mal, {who} hacía ruido {when}|Buenas noches, hasta luego|una película con {who} {when}|{who} vive al otro lado de la ciudad|{who} necesitaba ayuda {when}',
    ),
    who: split(
      'el vecino|mi jefe|Pedro|mi prima|una compañera|María|los niños|un viejo amigo|el hermano de Julia|la mujer de la tienda',
    ),
    what: split(
      'la perra del vecino|un dentista de la tele|su hermana|una contraseña larga|frutos secos y chocolate|una tarta de cumpleaños|el lavado de coches|zapatos nuevos|el alquiler|un taladro|un fontanero|unas llaves perdidas|la vida en el campo|una ciudad nueva|los años de escuela|la mamá de Ana',
    ),
    other: split(
      'el jardín|el partido de fútbol|una película del espacio|el tranvía nuevo|fotos viejas|el tiempo|una reunión larga|el mercado|su guitarra|un juego de mesa|las noticias|vacaciones en el mar|café|el tren con retraso|un podcast|la colada|las elecciones|un museo|bicicletas',
    ),
    when: split('ayer|la semana pasada|esta mañana|el domingo|esta noche|al mediodía|el otro día'),
  },
  {
    name: 'French',
    facts: [
      [
        'Notre chien Biscotte a encore mangé le canapé.',
        "Comment s'appelle mon chien ?",
        'rappelle-moi le nom de notre chien',
      ],
      [
        "J'ai rendez-vous chez le dentiste mardi 14 à quinze heures trente.",
        'Rappelle-moi le dentiste stp',
        "C'est quand mon rendez-vous chez le dentiste ?",
      ],
      [
        "Ma sœur a déménagé à Nantes l'hiver dernier.",
        'Où habite ma sœur ?',
        'Dans quelle ville a déménagé ma soeur ?',
      ],
      [
        'Le mot de passe du wifi du chalet est baleine42.',
        "C'est quoi le mot de passe du wifi ?",
        'mot de passe du chalet ?',
      ],
      [
        'Je suis allergique aux noisettes depuis tout petit.',
        'À quoi suis-je allergique ?',
        'tu te souviens de mon allergie ?',
      ],
      ['Maman aura soixante ans le 3 mai.', "C'est quand l'anniversaire de maman ?", 'Quel âge aura maman ?'],
      [
        'On a garé la voiture au niveau C du parking de la gare.',
        "Où est-ce que j'ai garé la voiture ?",
        'À quel niveau est garée la voiture ?',
      ],
      [
        'Ma pointure est 43, 44 pour les bottes.',
        'Quelle est ma pointure ?',
        'je fais quelle pointure en bottes ?',
      ],
      [
        "Le propriétaire s'appelle monsieur Lemaire, il ne répond que le matin.",
        "Comment s'appelle le propriétaire ?",
        'Qui est notre propriétaire ?',
      ],
      [
        "J'ai prêté ma perceuse à Thomas du troisième.",
        'Qui a ma perceuse ?',
        'À qui ai-je prêté la perceuse ?',
      ],
      [
        'Le plombier a demandé 180 euros pour la chaudière.',
        'Combien a demandé le plombier ?',
        'Combien a coûté la chaudière ?',
      ],
      [
        'Le double des clés est sous le pot de fleurs bleu.',
        'Où est le double des clés ?',
        'où je range le double de la clé',
      ],
    ],
    followUps: [
      [
        'Agnès habite maintenant à Turku dans une maison en bois près de la rivière.',
        "Tu te souviens d'Agnès ?",
        "Bien sûr, tu jouais dans l'orchestre avec Agnès.",
        'et elle habite où maintenant ?',
      ],
      [
        "La vieille Volvo a besoin d'une batterie neuve avant l'hiver.",
        'La Volvo roule encore ?',
        'La Volvo roulait bien la dernière fois.',
        'De quoi avait-elle besoin déjà ?',
      ],
    ],
    smallTalk: split(
      "bonne nuit :)|on fait des spaghettis ?|bonjour !|haha trop drôle|comment ça va aujourd'hui ?|merci, ça m'aide beaucoup|je suis crevé, quelle journée|on regarde un film ce soir ?|tu as bien dormi ?|ok, à plus tard|il pleut encore|qu'est-ce qu'on mange ce soir ?|raconte-moi une blague|tu veux un café ?|on joue à un jeu ?|je m'ennuie|on va au marché ?|raconte-moi quelque chose de drôle|je vais au lit, dors bien|enfin vendredi|mon café est froid|j'ai trop faim|il fait beau, c'est super|le dîner était délicieux|j'ai mal à la tête|le bus était encore en retard|je viens de me réveiller|souhaite-moi bonne chance",
    ),
    remarks: [
      ['Camille veut devenir vétérinaire.', 'Je vois Camille demain'],
      ["L'accordéon vient de mon arrière-grand-père.", "j'ai rejoué de l'accordéon hier"],
    ],
    filler: split(
      "Vu {who} avec {what} {when}|{who} a demandé pour {what} {when}|On a parlé de {what} avec {who}|{when} je pensais à {what}|{who} passe à la maison {when}|Pas le temps pour {what} {when}|{who} a appelé et parlé de {what}|J'ai rêvé de {what}, bizarre|Tu le crois, {who} a oublié {what}|{when} c'était très bien|cuisiné avec {who} {when}, des spaghettis et une salade|il a plu {when}, on est restés dedans|mal dormi, {who} faisait du bruit {when}|Bonne nuit, à demain|un film avec {who} {when}|{who} habite à l'autre bout de la ville|{who} avait besoin d'aide {when}",
    ),
    who: split(
      'le voisin|mon chef|Pierre|ma cousine|une collègue|Marie|les enfants|un vieil ami|le frère de Julie|la dame du magasin',
    ),
    what: split(
      "le chien du voisin|un dentiste à la télé|sa sœur|un mot trop long|des noix et du chocolat|un gâteau d'anniversaire|le lavage de voitures|des chaussures neuves|le loyer|une perceuse|un plombier|des clés perdues|la vie à la campagne|une nouvelle ville|la maman de Lucie|un rendez-vous",
    ),
    other: split(
      "le jardin|le match de foot|un film sur l'espace|le nouveau tramway|de vieilles photos|la météo|une longue réunion|le marché|sa guitare|un jeu de société|les nouvelles|des vacances à la mer|du café|le train en retard|un podcast|la lessive|les élections|un musée|des vélos",
    ),
    when: split("hier|la semaine dernière|ce matin|dimanche|ce soir|à midi|l'autre jour"),
  },
  {
    name: 'Russian',
    facts: [
      ['Наша собака Рекс опять погрызла диван.', 'Как зовут мою собаку?', 'напомни, как зовут нашу собаку'],
      [
        'Во вторник 14-го в половине четвёртого у меня стоматолог.',
        'Напомни про стоматолога, пожалуйста',
        'Когда мне к стоматологу?',
      ],
      ['Моя сестра зимой переехала в Казань.', 'Где живёт моя сестра?', 'В какой город переехала сестра?'],
      ['Пароль от вайфая на даче — синийкит42.', 'Какой пароль от вайфая?', 'пароль вайфая на даче?'],
      ['У меня с детства аллергия на фундук.', 'На что у меня аллергия?', 'помнишь мою аллергию?'],
      [
        'Третьего мая маме исполняется шестьдесят.',
        'Сколько лет исполнится маме?',
        'Когда маме исполняется шестьдесят?',
      ],
      ['Машину мы оставили на уровне Ц у вокзала.', 'Где я оставил машину?', 'На каком уровне стоит машина?'],
      ['Дрель я одолжил Толе с третьего этажа.', 'У кого моя дрель?', 'Кому я одолжил дрель?'],
      [
        'Сантехник попросил за бойлер 180 евро.',
        'Сколько попросил сантехник?',
        'Во сколько обошёлся бойлер?',
      ],
      ['Запасной ключ лежит под синим горшком.', 'Где запасной ключ?', 'где лежат запасные ключи'],
    ],
    followUps: [
      [
        'Агния теперь живёт в Турку, в деревянном доме у реки.',
        'Помнишь Агнию?',
        'Конечно, ты играл с Агнией в оркестре.',
        'а где она живёт?',
      ],
      [
        'Старому Вольво до зимы нужен новый аккумулятор.',
        'Вольво ещё ездит?',
        'В последний раз Вольво ехал хорошо.',
        'Что ему было нужно?',
      ],
    ],
    smallTalk: split(
      'спокойной ночи :)|давай сварим спагетти|доброе утро!|хаха, смешно|как дела сегодня?|спасибо, очень помогло|я так устал, ну и день|давай посмотрим фильм вечером|ты хорошо спал?|ладно, до скорого|опять дождь|что будем есть вечером?|расскажи анекдот|хочешь кофе?|давай поиграем в игру|мне скучно|пойдём на рынок?|расскажи что-нибудь смешное|я в кровать, спи сладко|наконец-то пятница|кофе опять остыл|я такой голодный|солнце вышло, красота|ужин был вкусный|голова болит|автобус опять опоздал|только что проснулся|пожелай мне удачи',
    ),
    remarks: [
      ['Аграфена учится на ветеринара.', 'завтра встречаюсь с Аграфеной'],
      ['Аккордеон достался мне от прадеда.', 'вчера опять играл на аккордеоне'],
    ],
    filler: split(
      '{when} видел {who}, речь шла про {what}|{who} спрашивал про {what} {when}|Говорили про {what} {when}|{when} думал про {what}|{who} зайдёт {when}|Нет времени на {what} {when}|{who} звонил и рассказывал про {what}|Приснилось что-то про {what}|{who} забыл про {what}|{when} было хорошо|варили спагетти {when}, {who} тоже|{when} шёл дождь, сидели дома|спал плохо, {who} шумел {when}|Спокойной ночи, до завтра|фильм вечером, {who} уснул|{who} живёт на другом конце города|{when} нужно было помочь',
    ),
    who: split('сосед|мой начальник|Пётр|двоюродный брат|коллега|Маша|сын Юли|старый друг|брат Юли'),
    what: split(
      'соседскую собаку|стоматолога из сериала|его сестру|длинный пароль|орехи и шоколад|торт на день рождения|мойку машин|новые ботинки|аренду|чужую дрель|сантехника|потерянные ключи|жизнь в деревне|новый город|маму Лены',
    ),
    other: split(
      'огород|футбольный матч|фильм про космос|новый трамвай|старые фото|погоду|долгое совещание|рынок|его гитару|настольную игру|новости|отпуск на море|кофе|опоздавший поезд|подкаст|стирку|выборы|музей|велосипеды',
    ),
    when: split('вчера|на прошлой неделе|сегодня утром|в воскресенье|вечером|в обед|на днях'),
  },
  {
    name: 'Japanese',
    facts: [
      ['うちの犬のレックスがまたソファをかじった。', '私の犬の名前は何?', 'うちの犬の名前、覚えてる?'],
      ['14日の火曜日、三時半に歯医者の予約がある。', '歯医者はいつ?', '歯医者の予約を思い出させて'],
      ['妹は去年の冬に札幌へ引っ越した。', '妹はどこに住んでる?', '妹はどこへ引っ越したの?'],
      [
        '山小屋のワイファイのパスワードはkujira42だよ。',
        'ワイファイのパスワードは?',
        '山小屋のパスワードは何だっけ',
      ],
      ['子供の頃からヘーゼルナッツのアレルギーがある。', '私のアレルギーは何?', '何のアレルギーだったっけ?'],
      ['母は五月三日に六十歳になる。', '母は何歳になる?', '母の誕生日はいつ?'],
      ['ドリルは三階の田中さんに貸した。', '私のドリルは誰が持ってる?', 'ドリルは誰に貸した?'],
      ['合鍵は青い植木鉢の下にある。', '合鍵はどこ?', '合鍵はどこに置いたっけ'],
    ],
    followUps: [
      [
        '美咲さんは今、仙台の川の近くに住んでいる。',
        '美咲さんを覚えてる?',
        'もちろん、オーケストラで美咲さんと一緒でしたね。',
        'で、彼女はどこに住んでる?',
      ],
      [
        '古いボルボは冬の前に新しいバッテリーが必要だ。',
        'ボルボはまだ走る?',
        '前回ボルボは調子よく走っていました。',
        '何が必要だったっけ?',
      ],
    ],
    smallTalk: split(
      'おやすみ :)|スパゲッティを作ろうか|おはよう!|はは、面白い|今日は元気?|ありがとう、助かった|疲れた、大変な一日だった|今夜映画を見よう|よく眠れた?|じゃあまたね|また雨だ|今夜何を食べる?|冗談を言って|コーヒー飲む?|ゲームをしよう|退屈だな|市場に行こうか|何か面白い話をして|もう寝るね|やっと金曜日だ|コーヒーが冷めちゃった|お腹すいた|いい天気だね|夕食おいしかった|頭が痛い|電車がまた遅れた|今起きたところ|眠れない',
    ),
    remarks: [
      ['沙織さんは獣医になりたいと言っていた。', '明日沙織さんに会うんだ'],
      ['アコーディオンは曽祖父の形見だ。', '久しぶりにアコーディオンを弾いた'],
    ],
    filler: split(
      '{when}、{who}と{what}を見た|{who}が{what}のことを聞いてきた|{who}と{what}の話をした|{when}、{what}のことを考えた|{when}、{who}が来る|{what}の時間がない|{who}から電話、{what}の話|{what}の夢を見た|{who}が{what}を忘れた|{when}は楽しかった|{who}とスパゲッティを作った|{when}は雨だった|よく眠れなかった、{who}がうるさい|おやすみ、また明日|{who}と映画を見た|{who}は町の反対側に住んでいる|{when}は助けが必要だった',
    ),
    who: split('隣の人|上司|健太|いとこ|同僚|真理|子供たち|昔の友達|店の人'),
    what: split(
      '隣の犬|テレビの歯医者|彼の妹|長いパスワード|ナッツとチョコ|誕生日のケーキ|洗車|新しい靴|家賃|電動ドリル|水道屋|なくした鍵|田舎の暮らし|新しい町|由美の母',
    ),
    other: split(
      '庭|サッカーの試合|宇宙の映画|新しい電車|古い写真|天気|長い会議|市場|彼のギター|ボードゲーム|ニュース|海の休暇|コーヒー|遅れた電車|ポッドキャスト|洗濯|選挙|美術館|自転車',
    ),
    when: split('昨日|先週|今朝|日曜日|今夜|昼|この前'),
  },
];
