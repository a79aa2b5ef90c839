/**
 * Step 4 of the route: whether a message asks for something that may be known, goes on from what was just said, or is
 * small talk, which needs no memory. By what is common to questions in several languages. Pure.
 */

/**
 * `question`: it asks for something that somebody may have said. `perhaps`: it has the form of a question, and little
 * says of what. `remark`: anything else, also a proposal. `greeting`: nothing that memory could add to.
 */
export type Asking = 'question' | 'perhaps' | 'remark' | 'greeting';

/** Somebody wants to be reminded. */
const REMEMBERING = anyOf(
  String.raw`\b(?:remind|remember|recall|forgot|forgotten)\b|\bwhat did (?:i|we) (?:say|tell)\b|\bi told you\b|\btell me (?:about|everything|all)\b(?! you)|\bwe (?:said|talked|agreed)\b`,
  String.raw`\b(?:erinner\w*|weißt du noch|weisst du noch|vergessen|nochmal|noch mal|erzähl mir (?:von|was))\b`,
  'recu[ée]rda|cuéntame (?:de|qué|sobre)|te acuerdas|acu[ée]rdate|me olvid|se me olvid',
  "rappell?e|souviens|parle-moi d|souvenez|j'ai oublié",
  'ricord|ti ricordi|lembra|lembre|herinner|weet je nog',
  'напомни|расскажи (?:мне )?(?:про|об?)(?!\\p{L})|помнишь|помните|забыл',
  '覚えて|思い出|忘れた|っけ[?？]?$|记得|記得|提醒|忘了|기억|까먹',
);

/** Questions with such a word ask for a fact. */
const ASKING = anyOf(
  String.raw`\b(?:what|where|when|who|whom|whose|which|how (?:much|many|old|long|tall|far|often|big))(?:'?s|'?re)?\b`,
  String.raw`\b(?:was|wann|wo|wohin|woher|wer|wen|wem|wessen|welche[rsnm]?|wie\s?viele?|wie (?:alt|lange|groß|hoch|oft|heißt|hieß|lautet|war))\b|\bwie heißen\b`,
  String.raw`(?<!\p{L})(?:qué|cuál(?:es)?|cuándo|cuánt[oa]s?|a?dónde|quién(?:es)?|cómo se (?:llama|llamaba))(?!\p{L})`,
  String.raw`(?<!\p{L})(?:quel(?:le)?s?|quoi|quand|où|qui|combien|comment s'app\p{L}+|c'est quoi)(?!\p{L})`,
  String.raw`\b(?:che cosa|cosa|quale|quali|quando|dove|quant[oaie]|chi|come si chiama)\b|(?<!\p{L})dov'è`,
  String.raw`\b(?:qual|quais|quando|onde|quem|quant[oa]s?|o que)\b|\b(?:wat|wanneer|waar|wie|welke?|hoeveel)\b`,
  '(?<!\\p{L})(?:что|чем|чего|кто|кого|кому|где|куда|откуда|когда|как(?:ой|ая|ое|ие|ую|ого|ом)|сколько|чей|чья|чьё|чьи|как (?:зовут|звали|называ\\p{L}+))(?!\\p{L})',
  '何|なに|なん|誰|だれ|どこ|いつ|どれ|どの|どんな|いくら|いくつ|什么|什麼|哪|谁|誰|多少|几|幾|何时|怎么叫|뭐|무엇|누구|어디|언제|얼마|몇|は\\s*[?？]',
);

/** Without a question mark only what clearly asks: "what a day" and "qué cansado" do not. */
const CLEARLY_ASKING = anyOf(
  String.raw`^(?:and |so |but |ok |hey )*(?:(?:what|where|when|who|whose|which)(?:'?s|'?re)?|(?:tell me|do you know|(?:can|could) you (?:tell|give) me)\b.*\b(?:what|where|when|who|which|number|code|address|name)|how (?:much|many|old|long|tall|far|often))\b(?! an?\b)`,
  String.raw`^(?:und |aber )*(?:wann|wo|wohin|woher|wer|wen|wem|wessen|wie\s?viele?|wie (?:alt|lange|groß|heißt|hieß|lautet|war)|welche[rsnm]?|was (?:war|ist|hat|habe|wollte|kostet))\b`,
  String.raw`^¿?(?:y )?(?:cuál(?:es)?|cuándo|cuánt[oa]s?|a?dónde|quién(?:es)?|cómo se|qué \p{L}+ de)(?!\p{L})`,
  "^(?:et )?(?:quand|où|combien|comment s'app|c'est (?:quoi|quand|où|qui)|qui (?:est|a)|quel(?:le)? est|je fais quel)",
  '^(?:а |и )?(?:кто|кого|кому|где|куда|откуда|когда|сколько|чей|чья|как зовут|какого числа)(?!\\p{L})',
  '(?:誰|どこ|いつ|何)(?:ですか|だった)|什么时候|在哪|是谁|是什么|叫什么|多少|几点|几号|多大',
);

/** What people ask for by its name alone. */
const WANTED =
  /(?<!\p{L})(?:code|password|passwort|kennwort|nummer|number|address|adresse|größe|size|código|contraseña|número|dirección|talla|mot de passe|numéro|pointure|код|пароль|номер|адрес|размер)(?!\p{L})|番号|パスワード|住所|密码|号码|地址/iu;

/** Proposals, offers and what is to happen now: a memory does not answer them. */
const PROPOSING = anyOf(
  String.raw`\b(?:shall|should) we\b|\blet'?s\b|^(?:wanna|want)\b|^isn't\b|\b(?:do|would|did) you (?:want|like|fancy|prefer|mind|love|enjoy|feel|think)\b|\bhow about\b|\bwhat about\b(?=.*\b(?:tonight|now|today)\b)|\bfancy\b|\b(?:can|could|will|would) (?:you|we)\b(?!.*\b(?:remember|tell|remind|recall)\b)`,
  String.raw`\b(?:sollen|wollen|können|gehen|kochen|machen|essen|fahren|schauen|gucken|spielen) wir\b|\blass(?:t)? uns\b|\b(?:willst|möchtest|magst|kannst|könntest) du\b(?!.*erinner)|\bhast du (?:lust|bock|hunger|durst|zeit|gut)\b|\bwas (?:wollen|sollen) wir\b`,
  String.raw`^¿?(?:qué |adónde |a dónde )?\p{L}*[aei]mos(?!\p{L})(?!.*\b(?:ayer|pasad[oa])\b)|\b(?:quieres|quiere|te apetece|prefieres|puedes|podrías|te gusta)\b(?!.*(?:recordar|decir))|\bvamos a\b`,
  String.raw`^(?:(?:et|alors|dis) )*(?:(?:et )?si )?on (?!a\b|avait|était|est\b|doit)\p{L}+|qu'est-ce qu'on (?!a\b|avait|était|est\b|doit)|\b(?:tu veux|veux-tu|vous voulez|ça te dit|tu préfères|tu aimes|aimes-tu|tu peux|peux-tu|si on)\b(?!.*(?:rappel|dire))`,
  String.raw`\b(?:vuoi|ti va|andiamo|facciamo|mangiamo|quer(?:es)?|vamos|zullen we|wil je|heb je zin)\b`,
  '(?<!\\p{L})(?:давай(?:те)?|^\\p{L}{3,}(?:ем|ём|им)|хочешь|хотите|будешь|может(?:,)? (?:сходим|сварим|посмотрим|поедим|погуляем)|(?:что )?будем|можешь|пойд[её]м)(?!\\p{L})(?!.*напомн)',
  '(?:よう|ろう|おう|こう|とう|のう|もう|ぼう|そう)(?:か|よ|ね)?[。!?！？]*$|ましょう|ませんか|(?:食べる|飲む|行く|見る|する|たい|欲しい|ほしい)(?:か|の)?[?？]|要不要|想不想|想吃|好不好|好吗|一起|吧[?？!！。]*$|할까|하자|먹을래|싶어',
);

/** About the one who is asked, or the moment: how are you, what are you doing, did you sleep. */
const ABOUT_NOW = anyOf(
  String.raw`\bhow(?:'s| is| are| was| were| r)? (?:are |is |was )?(?:you|u|ya|it|things|life|everything|your|going)\b|\bhow do you\b|\bwhat(?:'s| is)? (?:up|new|happening|going on)\b|\bwhat are (?:you|u)\b|\bwhat do you\b|\b(?:are|were|did|have|will|is) you(?:r)?\b(?!.*\b(?:told|said|me|my|i|our)\b)|\b(?:who|where) are you\b|\bwhat time is it\b|\bwhat'?s for (?:dinner|lunch|breakfast)\b`,
  String.raw`\bwie (?:geht|gehts|läuft|war dein|fühlst)\b|\bwas (?:machst|tust|denkst|meinst|gibt'?s|geht)\b|\b(?:bist|hast|schläfst|freust|magst) du\b(?!.*\b(?:mein\w*|mir|mich|ich|unser\w*)\b)|\bwo bist du\b|\bwie spät\b|\balles (?:klar|gut|ok)\b`,
  String.raw`\bc[óo]mo (?:est[áa]s?|va|te va|andas|has)\b|qué (?:tal|haces|hay|pasa|piensas|opinas)\b|^¿?(?:has|estás|tienes|dormiste|sientes)\b(?!.*\bmi\b)|\bqué hora es\b|todo bien`,
  String.raw`\bcomment (?:ça|ca|vas|allez|tu)\b|\bça va\b|\bquoi de neuf\b|\b(?:tu )?en penses\b|\bquelle heure est-il\b|\b(?:tu fais quoi|que fais-tu|tu penses quoi|as-tu|es-tu|tu as (?:bien|passé|faim|soif|envie)|tu es|t'as)\b(?!.*\b(?:mon|ma|mes|notre)\b)`,
  String.raw`\bcome (?:stai|va)\b|\bche fai\b|\bcomo (?:vai|está)\b|\btudo bem\b|\bhoe gaat\b`,
  '(?<!\\p{L})(?:как (?:дела|ты|вы|жизнь|спал|настроение|прошёл|прошел|самочувствие)|что (?:нового|делаешь|думаешь)|чем занимаешься|который час|ты (?:хорошо |как )?(?:спал|спала|тут|здесь|где|голоден|устал))(?!\\p{L})',
  '元気|調子|何して(?:る|いる|ます)|(?:よく)?眠れ|今何時|几点了|眠い|疲れ(?:た|て)|最近どう|你好吗|怎么样|在干(?:嘛|什么)|干嘛|睡得|잘 지내|뭐 해|뭐해',
);

/** Greetings, thanks, laughter. */
const GREETING = anyOf(
  String.raw`^(?:good (?:night|morning|evening|afternoon)|hello|hi|hey|bye|thanks|thank you|haha|lol|ok(?:ay)?|see you|night)\b[^?]*$`,
  String.raw`^(?:gute[nr]? (?:nacht|morgen|abend|tag)|hallo|moin|servus|tschüss|danke|haha|ok|bis (?:später|morgen|dann))\b[^?]*$`,
  String.raw`^¡?(?:buen[oa]s? (?:noches|días|tardes|día)|hola|adiós|gracias|jaja|vale|hasta)(?!\p{L})[^?]*$`,
  String.raw`^(?:bonne nuit|bonjour|bonsoir|salut|merci|haha|coucou|à (?:plus|demain|bientôt))(?!\p{L})[^?]*$`,
  '^(?:спокойной|доброе|добрый|доброй|привет|пока|спасибо|хаха|ладно|до (?:скорого|завтра|встречи))(?!\\p{L})[^?]*$',
  '^(?:おやすみ|おはよう|こんにちは|こんばんは|ありがとう|じゃあ|はは|またね|晚安|早安|早上好|你好|谢谢|哈哈|再见|안녕|고마)[^?？]*$',
);

/** "Isn't it?" wants agreement. */
const TAG =
  /(?:,\s*|\s)(?:isn't it|aren't (?:you|they|we)|don't you(?: think)?|right|huh|eh|oder|nicht wahr|gell|ne|verdad|no|non|n'est-ce pas|hein|pas vrai|vero|né|да|правда|не так ли|对吧|是吧|でしょ(?:う)?|よね)\s*[?？]+$/iu;

/** The weather and the like of this moment. */
const NOW_ONLY =
  /\b(?:weather|today|tonight|this evening)\b|\b(?:wetter|heute)\b|\b(?:hoy|esta noche|tiempo hace)\b|\b(?:aujourd'hui|ce soir|météo|temps fait)\b|\b(?:oggi|stasera|hoje|vandaag)\b|сегодня|погода|вечером|今日|今夜|今晩|天気|今天|今晚|天气/iu;
/** The asker's own affairs, which can have been told. */
const FIRST_PERSON =
  /(?<!\p{L})(?:i|i'm|i've|me|my|mine|we|our|us|ich|mir|mich|mein(?:e[mnrs]?)?|wir|uns|unser(?:e[mnrs]?)?|mi|mis|me|yo|tengo|nuestr[oa]s?|je|j'ai|mon|ma|mes|moi|notre|nos|nous|io|mio|mia|meu|minha|ik|mijn|ons|я|мне|меня|мой|моя|мо[её]|мои|мою|моего|моей|мы|нам|нас|наш\p{L}*)(?!\p{L})|私|僕|俺|うち|我/iu;

export function askingOf(message: string): Asking {
  const text = message.trim().replaceAll('’', "'").toLowerCase();
  if (REMEMBERING.test(text)) return 'question';
  if (GREETING.test(text) || (ABOUT_NOW.test(text) && !FIRST_PERSON.test(text))) return 'greeting';
  if (PROPOSING.test(text)) return 'remark';
  const marked = /[?？؟¿]/.test(text);
  if (TAG.test(text) && !ASKING.test(text)) return 'remark';
  if (NOW_ONLY.test(text) && !FIRST_PERSON.test(text)) return 'remark';
  if (marked) return [ASKING, FIRST_PERSON, WANTED].some((sign) => sign.test(text)) ? 'question' : 'perhaps';
  if (CLEARLY_ASKING.test(text)) return 'question';
  return WANTED.test(text) ? 'perhaps' : 'remark';
}

const GOING_ON =
  /^(?:and|but|or|und|aber|oder|y|o|pero|et|mais|ou|e|ma|en|а|и|но|で|じゃあ|それで|那|그럼)(?![\p{Script=Latin}\p{Script=Cyrillic}])|(?<!\p{L})(?:he|she|it|they|him|her|his|hers|its|them|their|there|er|sie|es|ihm|ihn|ihr|ihre[rsnm]?|ihnen|dort|damit|davon|él|ella|ellos|ellas|su|sus|allí|il|elle|ils|elles|lui|leur|y|là-bas|lui|lei|loro|ele|ela|hij|zij|он|она|оно|они|его|её|ему|ей|их|им|там)(?!\p{L})|彼女|彼|それ|そこ|あれ|他|她|它|那里|那儿|그녀|그는|그가/iu;

/** Words too few to say what a question is about, apart from those that only ask. */
const SHORT_WORDS = 5;
const SHORT_CHARS = 10;

/** Whether a message can only be understood with what was said before it. */
export function goesOn(message: string): boolean {
  const text = message.trim().toLowerCase();
  if (GOING_ON.test(text)) return true;
  const unspaced = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]/u.test(text);
  return unspaced ? [...text].length <= SHORT_CHARS : text.split(/\s+/).length <= SHORT_WORDS;
}

function anyOf(...patterns: string[]): RegExp {
  return new RegExp(patterns.join('|'), 'iu');
}
