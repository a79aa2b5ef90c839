/** Everyday words, and the members of kinds that people ask for. Pure. */
import { indexTerms, stem } from './terms.js';

/** Even if rare in a chat, they tell nothing: "sleep tight" is no reminder of a bad night long ago. */
const WORDS = `
  sleep asleep nap bed tired wake awake dream rest yawn alarm eat food meal hungry starving cook dinner lunch breakfast
  supper snack coffee tea drink thirsty water milk juice beer wine bread pizza pasta spaghetti salad soup cake chocolate
  cookie delicious tasty yummy rain rainy sun sunny snow wind windy storm cloud cold hot warm freeze weather forecast
  outside inside day week weekend month year hour minute second moment monday tuesday wednesday thursday friday saturday
  sunday morning noon afternoon evening night midnight today tomorrow yesterday tonight early late soon spring summer
  autumn winter holiday work office boss meeting school class homework home house room kitchen bathroom couch shower bath
  clean tidy laundry dishes shop market grocery town city street bus train tram car bike ride drive walk run jog gym
  sport exercise stretch park garden film music song game play joke story laugh funny fun smile bored book read write
  dance party tv series episode watch listen radio podcast news phone call text message chat photo internet computer
  laptop email screen happy sad love hate miss nice great good bad fine busy ready lazy free wait luck lucky hug kiss
  welcome congratulations cheers sweet cute cool awesome amazing wonderful beautiful perfect crazy weird strange quiet
  loud calm relax stress exhausted headache head hurt ache sick guy everyone everybody somebody someone anyone friend
  people family mom dad kid baby man woman dude mate dear honey darling come go leave stay stop start finish end try use
  put take bring give make feel look sound seem think see hear talk speak ask answer tell say want need hope wish mean
  know understand believe guess remember forget plan idea thing stuff place way time life world bit lot little big long
  short old next last first whole half every less enough quick slow fast hard easy tight sorry excuse sure right wrong
  true later back away around together alone again already always never often bye goodbye haha lol omg brb body foot hand
  finger arm leg knee eye ear nose mouth tooth hair face skin neck shoulder stomach tummy belly throat voice heart door
  window table chair desk floor wall stairs blanket pillow lamp light dark candle fridge oven plate cup mug glass bottle
  bowl fork spoon bag pocket clothes shoe sock shirt jacket pants dress paper pen box stuck kill grab hold drop pick push
  pull open close turn move sit stand lie jump fly catch throw carry break fix wash pay buy sell cost money price hide
  find lose send check visit join share save change grow keep empty full heavy dirty wet dry soft strong weak sharp thin
  thick tall wide deep high low red blue green yellow black white brown pink orange purple color one two three four five
  six seven eight nine ten hundred thousand couple few many several board card team ball match goal question problem
  trouble reason word name number kind sort type side middle top bottom corner front line list noise smell taste touch
  air fire ground sky star moon sea beach river lake tree flower bird dog cat pet fish cheese egg butter sugar salt meat
  chicken fruit apple banana vegetable rice sandwich pancake ice cream annoyed angry upset worried nervous scared excited
  proud grateful hopefully finally actually probably definitely maybe almost nearly barely total awful terrible horrible
  gross ridiculous silly stupid smart clever pretty ugly special normal usual favorite favourite important interesting
  possible impossible different grumpy sleepy cozy cosy comfy sneeze cough flu sweat shiver traffic queue ticket seat
  neighbour neighbor colleague boyfriend girlfriend husband wife sister brother son daughter grandma grandpa

  schlafen schlaf schläft geschlafen bett müde wach aufgewacht aufstehen aufgestanden traum geträumt essen isst gegessen
  hunger hungrig kochen gekocht abendessen mittagessen frühstück kaffee tee trinken durst wasser bier wein brot nudeln
  suppe salat kuchen schokolade lecker regen regnet sonne sonnig scheint schnee schneit kalt heiß draußen drinnen tag
  woche wochenende monat jahr stunde stunden minuten montag dienstag mittwoch donnerstag freitag samstag sonntag morgen
  mittag nachmittag abend nacht heute gestern früh spät bald sommer frühling herbst urlaub ferien feierabend arbeit
  arbeiten büro chef schule hausaufgaben zuhause haus zimmer küche dusche duschen baden putzen aufräumen wäsche einkaufen
  laden markt stadt straße zug bahn auto rad fahren spazieren spaziergang laufen joggen garten filme musik spiel spielen
  witz lachen lustig spaß langweilig langweile buch lesen tanzen fernsehen folge schauen gucken hören nachrichten handy
  anrufen telefon nachricht foto glücklich traurig liebe gern vermisse schön toll gut besser beste schlecht fertig bereit
  faul frei warten warte glück umarmung kuss willkommen glückwunsch süß verrückt komisch ruhig laut entspannen kopfweh
  kopfschmerzen kopf krank leute freund familie mama papa kommen gehen bleiben anfangen aufhören machen fühle fühlen
  denken glauben sehen reden sprechen fragen sagen hoffe hoffen wünsche wünschen weiß idee sache ding ort zeit leben welt
  bisschen lang kurz neu alt nächste letzte ganze schnell langsam schwer leicht entschuldigung tut leid richtig falsch
  wahr zurück zusammen allein

  dormir duermo duerme dormido dormí cama cansado cansada despierto sueño descansar descansa comer comida hambre cocinar
  cena cenar almuerzo desayuno café té beber sed agua cerveza vino pan espaguetis sopa ensalada tarta rico lluvia llueve
  lloviendo sol nieve viento frío calor tiempo fuera día semana mes año hora minuto lunes martes miércoles jueves viernes
  sábado domingo mañana tarde noche hoy ayer temprano pronto verano invierno vacaciones trabajo trabajar oficina jefe
  escuela deberes casa cuarto cocina ducha ducharme limpiar compra comprar tienda mercado ciudad autobús tren coche paseo
  pasear correr deporte jardín película música canción juego jugar chiste reír gracioso divertido aburrido aburrida libro
  leer bailar fiesta tele ver escuchar noticias móvil teléfono llamar mensaje feliz triste amor quiero extraño bonito
  genial bien mal mejor peor listo libre espera suerte abrazo beso felicidades loco raro tranquilo relajar estrés cabeza
  duele enfermo gente amigo amiga familia niños venir ir salir quedarse empezar terminar hacer sentir pensar creer hablar
  preguntar decir esperar cosa vida mundo poco largo nuevo viejo próximo último rápido lento difícil fácil perdón verdad
  juntos solo

  dors dort lit fatigué fatiguée crevé réveil réveillé rêve reposer manger faim cuisiner dîner déjeuner thé boire soif
  eau vin pain pâtes spaghettis gâteau bon délicieux pluie pleut soleil neige vent froid chaud temps dehors jour semaine
  mois année heure lundi mardi mercredi jeudi vendredi samedi dimanche matin midi soir soirée nuit aujourd demain hier
  tôt bientôt été hiver vacances travail travailler bureau école devoirs maison chambre canapé douche bain ménage courses
  magasin marché ville rue voiture vélo promenade promener courir musique chanson jeu jouer blague rire drôle ennuie
  ennuyeux livre lire danser fête regarder écouter nouvelles appeler heureux amour aime manque beau belle super mieux
  pire prêt attends chance câlin bisou bisous félicitations fou bizarre détendre tête malade gens ami amis famille maman
  enfants aller partir commencer finir faire penser croire parler demander dire espère chose endroit vie monde peu
  nouveau vieux prochain dernier rapide lent difficile désolé vrai ensemble seul

  dormo dormito letto stanco stanca sveglio sogno riposo mangiare fame cucinare pranzo colazione caffè bere sete acqua
  birra zuppa insalata torta cioccolato buono pioggia piove neve vento freddo caldo tempo fuori giorno settimana anno ora
  lunedì martedì mercoledì giovedì venerdì sabato domenica mattina pomeriggio sera notte oggi domani ieri presto tardi
  estate inverno vacanza lavoro lavorare ufficio scuola stanza cucina divano doccia pulire spesa negozio mercato città
  strada treno macchina passeggiata correre giardino canzone gioco giocare barzelletta ridere divertente noia annoio
  leggere ballare festa televisione guardare ascoltare chiamare messaggio felice bello bene meglio libero aspetta fortuna
  abbraccio bacio auguri strano tranquillo testa malato amico amica amici famiglia mamma bambini andare restare fare
  parlare spero vita mondo nuovo vecchio prossimo veloce scusa vero insieme

  durmo acordei sonho fome cozinhar jantar almoço chá cerveja vinho pão massa salada bolo gostoso chuva chove chovendo
  fora segunda terça quarta quinta sexta manhã noite hoje amanhã ontem cedo verão férias trabalho trabalhar escritório
  escola quarto cozinha banho limpar loja cidade rua ônibus trem carro passeio esporte jardim canção jogo jogar piada
  engraçado tédio livro ler dançar assistir ouvir ligar mensagem saudade bom boa melhor abraço beijo parabéns estranho
  calmo cabeça doente mãe pai crianças vir ficar fazer falar dizer espero ideia coisa pouco novo velho desculpa sozinho

  slapen slaap geslapen moe droom rusten eten honger koken avondeten ontbijt koffie drinken dorst wijn brood soep taart
  chocola lekker regent zon sneeuw koud weer buiten dag maand jaar uur maandag dinsdag woensdag donderdag vrijdag
  zaterdag zondag ochtend middag avond vandaag gisteren vroeg laat zomer vakantie werk werken kantoor huis kamer keuken
  bank schoonmaken boodschappen winkel stad straat trein fiets wandelen rennen tuin muziek liedje spel spelen grap
  grappig saai verveel boek lezen dansen feest televisie kijken luisteren telefoon bellen bericht blij verdrietig liefde
  mooi leuk slecht beter klaar vrij wachten geluk knuffel kus gefeliciteerd gek raar rustig hoofd ziek mensen vriend
  vrienden kinderen komen gaan blijven doen voelen praten zeggen hoop leven wereld nieuw oud volgende snel moeilijk
  makkelijk waar samen alleen

  спать сплю поспал кровать устал проснулся сон снилось отдыхать отдых есть еда кушать голодный готовить ужин обед
  завтрак кофе чай пить вода пиво вино хлеб спагетти суп салат торт шоколад вкусно дождь солнце снег ветер холодно жарко
  тепло погода улица день неделя выходные месяц год час минута понедельник вторник среда четверг пятница суббота
  воскресенье утро вечер ночь сегодня завтра вчера рано поздно скоро лето зима отпуск каникулы работа офис школа дом
  комната кухня диван душ убирать стирка магазин рынок город автобус поезд машина гулять прогулка бегать спорт сад фильм
  кино музыка песня игра анекдот шутка смеяться смешно скучно книга читать танцевать праздник телевизор сериал смотреть
  слушать новости телефон звонить сообщение фото счастливый грустно любовь люблю скучаю красиво хорошо плохо лучше готов
  ждать удача обнимаю целую поздравляю странно тихо стресс голова болит болеть люди друг друзья семья мама папа дети идти
  прийти остаться начать закончить делать чувствовать думать говорить спросить сказать надеюсь идея вещь жизнь мир новый
  старый быстро трудно легко извини правда вместе один

  天気 仕事 今日 明日 昨日 今夜 映画 音楽 電車 電話 学校 会社 家族 友達 朝食 昼食 夕食 料理 散歩 買い物 睡眠 休日 週末 布団 市場 寝る 起きる 食べる 飲む コーヒー ゲーム テレビ スパゲッティ 疲れた 退屈 冗談
  天气 工作 今天 明天 昨天 电影 音乐 电话 公司 朋友 早饭 午饭 晚饭 睡觉 起床 购物 周末 咖啡 下雨 好吃 吃饭 喝茶 上班 下班 回家 洗澡 游戏 市场 笑话 无聊 날씨 오늘 내일 어제 영화 음악 전화 학교 회사 친구
  아침 점심 저녁 커피 산책 주말 게임 시장 농담`;

/** In indexed form: without endings and accents. */
const EVERYDAY = new Set(indexTerms(WORDS));

export function isEveryday(term: string): boolean {
  return EVERYDAY.has(term);
}

/** Kinds and their members: "which sports" finds football and chess. English only; a row has the kind's words, then its members. */
const ROWS = `
  sport: football soccer basketball tennis volleyball baseball softball hockey golf rugby cricket swim run jog cycle bike
    ski snowboard surf climb hike box karate judo yoga gym badminton squash marathon skate gymnastics wrestle archery row
    sail fencing dive kayak bowling workout fitness
  food dish meal cuisine snack eat: pizza pasta spaghetti lasagna salad soup stew bread toast cheese rice chicken beef pork
    lamb turkey bacon ham fish salmon tuna shrimp steak sushi ramen burger sandwich taco burrito noodle dumpling curry
    kebab egg omelette pancake waffle cake pie cookie dessert chocolate potato fries bean tofu vegetable fruit sauce
    breakfast lunch dinner brunch cook bake grill recipe
  drink beverage: coffee tea beer wine juice water milk cocktail whisky vodka gin rum lemonade soda cola smoothie champagne
    espresso latte
  fruit: apple banana orange lemon lime grape strawberry blueberry raspberry cherry peach pear plum mango pineapple melon
    kiwi avocado coconut
  vegetable: carrot potato tomato onion garlic pepper cucumber broccoli cabbage lettuce spinach pea bean corn mushroom
    zucchini pumpkin eggplant
  animal pet: dog cat horse pony bird parrot rabbit bunny hamster fish turtle tortoise snake lizard cow pig sheep goat duck
    goose chicken mouse rat bear wolf fox deer lion tiger elephant monkey dolphin whale shark bee butterfly
  flower plant: rose tulip lily orchid sunflower daisy tree herb basil cactus
  country abroad: france germany italy spain portugal england britain uk ireland scotland wales switzerland austria belgium
    netherlands denmark sweden norway finland iceland poland czech hungary greece turkey russia ukraine croatia romania
    bulgaria serbia albania egypt morocco tunisia kenya tanzania nigeria ghana ethiopia israel jordan lebanon iran iraq
    india pakistan bangladesh nepal china japan korea taiwan vietnam thailand cambodia indonesia malaysia singapore
    philippines australia zealand canada mexico cuba jamaica bahamas brazil argentina chile peru colombia usa america
  city town: london paris berlin munich hamburg vienna zurich rome milan venice florence naples madrid barcelona lisbon
    porto amsterdam brussels copenhagen stockholm oslo helsinki prague budapest warsaw athens istanbul moscow dublin
    edinburgh cairo dubai mumbai delhi beijing shanghai tokyo kyoto osaka seoul bangkok sydney melbourne toronto vancouver
    montreal york boston chicago miami houston dallas austin seattle denver vegas francisco angeles philadelphia
    washington
  place location destination: city country beach mountain park museum island lake forest village restaurant cafe
  instrument: piano guitar violin drum flute cello trumpet saxophone clarinet harp ukulele bass keyboard organ harmonica
    viola
  music genre band: jazz rock pop classical rap metal blues folk reggae techno punk concert song album singer
  movie: comedy thriller horror drama documentary cinema
  game: chess poker monopoly card puzzle playstation xbox nintendo console
  hobby interest pastime: paint draw read write photograph hike cook bake garden knit sew dance sing fish travel chess
    puzzle game music guitar piano camp pottery collect craft ski swim run yoga cycle
  activity: hike swim run walk cycle ski dance paint camp yoga climb game cook bowling kayak shop museum concert picnic
  family relative: mother father sister brother son daughter grandmother grandfather uncle aunt cousin niece nephew wife
    husband parent child twin
  sibling: brother sister twin
  parent: mother father
  child: son daughter baby
  partner spouse: wife husband girlfriend boyfriend fiance
  illness ailment disease sickness: flu cold fever headache cough allergy asthma diabetes cancer infection pain migraine
    covid sick virus injury surgery hospital
  health healthy: exercise gym diet vitamin sleep doctor
  profession: teacher doctor nurse engineer lawyer dentist chef driver pilot programmer developer designer artist writer
    journalist manager accountant farmer police firefighter scientist waiter
  subject: math physics chemistry biology history geography economics literature philosophy psychology
  language: english german french spanish italian portuguese russian chinese japanese korean arabic dutch hindi turkish
    latin
  color colour: red blue green yellow orange purple pink black white brown gray grey blond
  clothes clothing outfit: shirt dress skirt pants jeans jacket coat sweater hoodie shoe boot sneaker hat scarf suit sock
  appearance: hair skin makeup tall eye beard tattoo
  vehicle transport: car bike motorcycle train bus plane boat truck van tram subway scooter
  season: spring summer autumn winter
  relationship romantic: boyfriend girlfriend crush date love marry single breakup wife husband engage
  dream goal ambition: want become hope wish someday
  problem difficulty challenge struggle trouble: hard difficult stress worry struggle problem issue
  feeling emotion mood: happy sad angry excited nervous stressed tired anxious proud scared lonely upset
  money financial: pay cost rent salary save afford expensive cheap bill loan debt
  device app: phone laptop computer tablet instagram tiktok youtube
  tv: netflix series episode
  art artistic: paint draw sculpture museum gallery sketch
  culture cultural: museum art theater concert gallery history festival exhibition opera
  outdoors nature: hike camp park mountain beach lake forest trail
  water: swim beach surf sail boat kayak lake sea ocean pool dive
  religion religious: church god pray christian muslim jewish bible
  skill talent: play dance sing draw paint cook
  exercise physical workout: gym run yoga swim bike hike walk pilates
  award achievement accomplish: win prize medal
  housework chore: clean wash laundry vacuum tidy
  recipe ingredient: tablespoon salt pepper garlic onion butter flour oven
  dessert: cake pie cookie chocolate tiramisu brownie cheesecake
  education degree: university college major bachelor master phd
  personality trait: funny shy introvert honest lazy outgoing
  landmark sight attraction: museum tower bridge statue palace castle
  vacation: flight hotel beach airport resort
  accident injury: broke ankle leg arm hospital crash
  celebrate celebration: birthday christmas party easter anniversary thanksgiving eve
  favorite favourite prefer: love enjoy prefer fan favorite adore
  hate dislike: hate dislike awful terrible
  fear afraid: scare fear afraid phobia nervous
  visit travel: go trip fly visit travel stay vacation
  live: home apartment house move
  study learn: university college school degree major class course student exam lesson
  relax stress: relax calm rest unwind stress massage yoga meditate`;

const KINDS = new Map<string, string[]>();
for (const [, kinds = '', members = ''] of ROWS.matchAll(/(?<![a-z ])([a-z ]+):([^:]*)(?=\n {2}\S|$)/g)) {
  for (const kind of stems(kinds)) {
    const known = KINDS.get(kind) ?? [];
    KINDS.set(
      kind,
      [...new Set([...known, ...stems(members)])].filter((member) => member !== kind),
    );
  }
}

function stems(words: string): string[] {
  return words.trim().split(/\s+/).map(stem);
}

/** The members that a kind's term may stand for. */
export function membersOf(term: string): string[] {
  return KINDS.get(term) ?? [];
}
