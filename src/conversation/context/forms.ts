/** The words by which step 4 of the route classifies a message's form, per language. Data alone. */
import type { Language } from '../../core/phrase.js';

/**
 * `asks`: for a fact. `exclaims`: opens an exclamation that begins like a question. `told`: about what somebody said or knows.
 * `own`: the speaker's own affairs, which they may have told. `moment`: you, us, now. `phatic`: greetings, thanks, laughter. `and`,
 * `them`: continue from what was said before.
 */
export type Form = 'asks' | 'exclaims' | 'told' | 'own' | 'moment' | 'phatic' | 'and' | 'them';

export const FORMS: Record<Language, Record<Form, ReadonlySet<string>>> = {
  English: {
    asks: words('what where when who whom whose which how whats wheres whens whos'),
    exclaims: new Set(['what a', 'what an']),
    told: words('remind remember recall forgot forgotten know told said mentioned agreed'),
    own: words('i my mine our ours'),
    moment: words('you your u shall should lets let today tonight wanna time weather'),
    phatic:
      words(`hello hi hey bye goodbye good night morning evening afternoon thanks thank haha hahaha lol ok okay later
      see sweet dreams going doing well nice great fine cool yes no sure up`),
    and: words('and but or so ok hey'),
    them: words('he she it they him her his hers its them their there'),
  },
  German: {
    asks: words(
      `was wann wo wohin woher wer wen wem wessen welche welcher welches welchen welchem wie wieviel wieviele`,
    ),
    exclaims: new Set(['was für']),
    told: words('erinnere erinnerst erinner weißt weisst vergessen gesagt erzählt nochmal'),
    own: words('ich mein meine meinen meinem meiner meines unser unsere unseren unserem unserer'),
    moment:
      words(`du dir dich dein deine deinen deinem deiner lass lasst lust willst magst möchtest sollen wollen kochen
      machen heute abend spät uhr wetter`),
    phatic:
      words(`hallo hi hey moin servus tschüss gute guten guter nacht morgen abend tag danke bitte haha hahaha ok okay
      bis später bald dann geht gehts gut klar schön schöne toll super ja nein schlaf`),
    and: words('und aber oder also'),
    them: words('er sie es ihm ihn ihr ihre ihrer ihren ihnen dort damit davon'),
  },
  Spanish: {
    asks: words('qué cuál cuáles cuándo cuánto cuánta cuántos cuántas dónde adónde quién quiénes cómo'),
    exclaims: words('qué vaya'),
    told: words('recuérdame recuerdame recuerda recuerdas acuerdas acuérdate olvidé dije dijiste sabes'),
    own: words('yo mi mis tengo soy nuestro nuestra nuestros nuestras'),
    moment:
      words(`tú te ti tu tus estás has haces quieres quiere prefieres puedes vamos cocinamos cenamos comemos hacemos
      hoy noche hora tiempo`),
    phatic:
      words(`hola adiós gracias buenas buenos buen noches días tardes día jaja jajaja vale hasta luego pronto mañana bien
      todo tal sí no genial`),
    and: words('y pero o entonces'),
    them: words('él ella ellos ellas su sus allí'),
  },
  French: {
    asks: words('quel quelle quels quelles quoi que quand où qui combien comment'),
    exclaims: words('quel quelle quels quelles que'),
    told: words('rappelle rappelles souviens souvient souvenez oublié sais dit'),
    own: words('je j mon ma mes notre nos'),
    moment: words(`tu te t toi ton ta tes vous votre on veux peux vas aimes aujourd hui soir heure météo`),
    phatic:
      words(`bonjour bonsoir bonne nuit soirée journée salut coucou merci haha hahaha ok plus tard demain bientôt ça va
      bien oui non super`),
    and: words('et mais ou alors dis'),
    them: words('il elle ils elles lui leur leurs y'),
  },
  Italian: {
    asks: words('cosa quale quali quando dove quanto quanta quanti quante chi come'),
    exclaims: words('che'),
    told: words('ricorda ricordi ricordami dimenticato detto sai'),
    own: words('io mio mia miei mie nostro nostra nostri nostre'),
    moment: words('tu ti tuo tua tuoi tue vuoi andiamo facciamo mangiamo stai fai oggi stasera tempo'),
    phatic: words(
      'ciao salve buongiorno buonasera buonanotte buona notte grazie haha ok bene va tutto dopo domani sì no',
    ),
    and: words('e ma o allora'),
    them: words('lui lei loro suo sua'),
  },
  Portuguese: {
    asks: words('que quem qual quais quando onde quanto quanta quantos quantas como'),
    exclaims: words('que'),
    told: words('lembra lembras lembre esqueci disse sabe sabes'),
    own: words('eu meu minha meus minhas nosso nossa nossos nossas'),
    moment: words('tu te teu tua você quer queres vamos hoje está vai tempo'),
    phatic: words(
      'olá oi tchau bom boa dia noite tarde obrigado obrigada haha kkk ok bem tudo até logo amanhã sim não',
    ),
    and: words('e mas ou então'),
    them: words('ele ela eles elas seu sua'),
  },
  Dutch: {
    asks: words('wat wanneer waar wie welke welk hoe hoeveel'),
    exclaims: new Set(['wat een']),
    told: words('herinner herinnert vergeten gezegd verteld weet'),
    own: words('ik mijn ons onze'),
    moment: words('jij je jou jouw u uw zullen wil zin laten vandaag vanavond weer'),
    phatic: words(
      'hallo hoi dag doei goede goedenacht nacht morgen avond welterusten dank bedankt haha ok gaat goed later tot ja nee',
    ),
    and: words('en maar of dus'),
    them: words('hij zij ze hem haar hun daar'),
  },
  Russian: {
    asks: words(`что чего чему чем кто кого кому кем где куда откуда когда как какой какая какое какие какую какого каком
      каким сколько чей чья чье чьё чьи`),
    exclaims: words('какой какая какое какие'),
    told: words(
      'напомни напомните помнишь помните забыл забыла знаешь знаете говорил говорила сказал сказала',
    ),
    own: words('я мой моя мое моё мои моего моей моему моим мою наш наша наше наши нашего нашу нашей нашему'),
    moment:
      words(`ты тебе тебя твой твоя вы вас вам давай давайте пойдем пойдём будем будешь хочешь хотите делаешь сегодня
      вечером погода час времени`),
    phatic:
      words(`привет здравствуй пока спасибо спокойной доброй ночи доброе добрый утро вечер день хаха хахаха ладно скорого
      завтра встречи дела хорошо да нет`),
    and: words('а и но'),
    them: words('он она оно они его её ее ему ей их им там'),
  },
};

/** The same for Japanese, Chinese and Korean, which do not separate words: parts of a text. */
export const UNSPACED_FORMS: Record<Form, readonly string[]> = {
  asks: split(
    '何 なに なん 誰 だれ どこ いつ どれ どの どんな いくら いくつ は? は？ 什么 什麼 哪 谁 多少 多大 多久 几 幾 何时 怎么 뭐 무엇 누구 어디 언제 얼마 몇',
  ),
  exclaims: [],
  told: split('覚えて 思い出 忘れた っけ 记得 記得 提醒 忘了 知道 기억 까먹'),
  own: split('私 僕 俺 うちの 我的 我妹 我家 我们的 내 우리'),
  moment: split(
    'うか ましょう ませんか よう 眠れ 疲れ 今日 今夜 今晩 今何時 元気 調子 何して 你好吗 怎么样 在干 今天 今晚 要不要 想不想 想吃 好不好 好吗 一起 吧 할까 하자 먹을래 오늘',
  ),
  phatic: split(
    'おやすみ おはよう こんにちは こんばんは ありがとう じゃあ はは またね 晚安 早安 早上好 你好 谢谢 哈哈 再见 안녕 고마 잘 자',
  ),
  and: split('で じゃあ それで 那 그럼'),
  them: split('彼女 彼 それ そこ あれ 他 她 它 那里 那儿 그녀 그는 그가'),
};

function words(list: string): ReadonlySet<string> {
  return new Set(split(list));
}

function split(list: string): string[] {
  return list.split(/\s+/);
}
