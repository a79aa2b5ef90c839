/** Step 4 of the route: automatic recall of a few earlier lines. The form of a message decides how relevant a line must be. */
import type { Zone } from '../../core/dates.js';
import { describe } from '../../core/errors.js';
import { functionWordsIn, type Language, languagesOf, withoutUnspacedFrames } from '../../core/phrase.js';
import {
  isFromOutside,
  type Recalled,
  type RecallMoment,
  recalledLine,
  type Scope,
} from '../../core/recall.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';

/** All lines together, in characters. */
const BUDGET = 3_000;
const MOST_LINES = 8;
/** More than needed, because some hits are skipped. */
const MOST_HITS = 2 * MOST_LINES;
/** Low for a question, because forgetting is worse than a superfluous line; high for a remark. docs/recall.md has the figures. */
const FLOORS: Record<Exclude<MessageForm, 'small talk'>, number> = {
  question: 0.2,
  perhaps: 0.35,
  remark: 0.9,
  /** Memories do not help with the present moment. */
  moment: Number.POSITIVE_INFINITY,
};
/** Number of hits about rarely mentioned things recalled even below the floor. */
const MOST_RARE = 2;
/** A question gets its best hits even below the floor, down to this. */
const LEAST = 0.02;
/** As a share of the best hit's relevance. */
const NEAR_BEST = 0.5;
/** The beginning of a long text usually says what it is about. */
const QUERY_CHARS = 2_000;
/** How much of the preceding messages is searched with a question that continues from them. */
const BEFORE_MESSAGES = 3;
const BEFORE_CHARS = 300;

export interface Recollection {
  lines: string[];
  /** Some of them are untrusted. */
  isFromOutside: boolean;
}

const NOTHING: Recollection = { lines: [], isFromOutside: false };

/** In order of time; an error never prevents a reply. `before`: earlier messages, oldest first; `shown`: the memory in the prompt. */
export async function recollect(
  { recall, zone, log }: Services,
  scope: Scope,
  batch: StoredMessage[],
  before: readonly StoredMessage[],
  shown: string,
  query: RecallMoment,
): Promise<Recollection> {
  const text = batch
    .map((message) => message.text)
    .join('\n')
    .slice(0, QUERY_CHARS);
  if (text.trim() === '') return NOTHING;
  try {
    const asking = batch.map((message) => formOf(message.text)).reduce(likelier);
    if (asking === 'small talk') return NOTHING;
    const around = asking === 'question' && goesOn(text) ? lastOf(before) : '';
    const asked = { ...query, text, limit: MOST_HITS };
    const { hits } = await recall.search(scope, around === '' ? asked : { ...asked, around });
    return chosenFrom(hits, asking, new Set(batch.map((message) => wordsOf(message.text))), shown, zone);
  } catch (error) {
    log.error({ ...scope, why: describe(error) }, 'recall failed; answering without');
    return NOTHING;
  }
}

/** `asked`: the words of the messages to answer; an earlier copy of the same question tells nothing. */
function chosenFrom(
  hits: Recalled[],
  asking: Exclude<MessageForm, 'small talk'>,
  asked: ReadonlySet<string>,
  shown: string,
  zone: Zone,
): Recollection {
  const best = Math.max(0, ...hits.map(({ relevance }) => relevance));
  const floor =
    asking === 'question' ? Math.min(FLOORS.question, Math.max(LEAST, best * NEAR_BEST)) : FLOORS[asking];
  const chosen = new Map<string, Recalled>();
  let chars = 0;
  let rare = 0;
  for (const hit of hits) {
    const isKnown =
      hit.source.kind === 'file' ? shown.includes(hit.text.trim()) : asked.has(wordsOf(hit.text));
    const isBelow = hit.relevance < floor;
    if (isKnown || (isBelow && (!hit.rare || rare >= MOST_RARE))) continue;
    if (isBelow) rare++;
    // An answer needs its question to be understood.
    const answered = hit.answers && !asked.has(wordsOf(hit.answers.text)) ? [hit.answers, hit] : [hit];
    const told = answered
      .map((each) => [recalledLine(each, zone), each] as const)
      .filter(([line]) => !chosen.has(line));
    const length = told.reduce((sum, [line]) => sum + line.length + 1, 0);
    if (chars + length > BUDGET || chosen.size + told.length > MOST_LINES) continue;
    chars += length;
    for (const [line, each] of told) chosen.set(line, each);
  }
  const inOrder = [...chosen].sort(([, a], [, b]) => (a.at ?? 0) - (b.at ?? 0));
  return {
    lines: inOrder.map(([line]) => line),
    isFromOutside: inOrder.some(([, each]) => isFromOutside(each)),
  };
}

function likelier(a: MessageForm, b: MessageForm): MessageForm {
  if (a === 'small talk' || b === 'small talk') return a === 'small talk' ? b : a;
  return FLOORS[a] < FLOORS[b] ? a : b;
}

function lastOf(before: readonly StoredMessage[]): string {
  return before
    .slice(-BEFORE_MESSAGES)
    .map(({ text }) => text.slice(0, BEFORE_CHARS))
    .join('\n');
}

/** The words alone, lower-case, without extra spaces and punctuation. */
function wordsOf(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
}

/**
 * `question`: asks for something that somebody may have said. `perhaps`: has a question mark but is hard to classify. `moment`:
 * about the persona or the present. `small talk`: greetings and the like. `remark`: anything else.
 */
type MessageForm = 'question' | 'perhaps' | 'remark' | 'moment' | 'small talk';

const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u;
const MARK = /[?？؟¿]/;
/** "What a day", "was für ein Tag", "quelle belle journée". */
const EXCLAIMS = /^(?:what an?|was für|wat een|qué|que|vaya|quel(?:le)?s?|che|как(?:ой|ая|ое|ие))(?: |$)/;
/** A question without a mark has its question word among these. */
const OPENING_WORDS = 3;
/** Below this length a question does not say what it is about. */
const SHORT_WORDS = 5;
const SHORT_CHARS = 10;

export function formOf(message: string): MessageForm {
  const { text, runs, has, isOf, opening } = wordingOf(message);
  if (has('told')) return 'question';
  if (!has('own') && (has('phatic') || has('moment')) && !hasContent(text, runs, isOf)) return 'small talk';
  if (has('moment') && !has('own')) return 'moment';
  const isMarked = MARK.test(text);
  // Without a question mark, only text that begins like a question or asks about the speaker's own affairs early ("c'est quand mon
  // train"), unlike "You won't believe how tired I am".
  const [first = ''] = opening;
  const early = runsOf(text.split(/[,.;:!]/, 1)[0] ?? '').slice(0, OPENING_WORDS);
  const isClear =
    UNSPACED.test(text) ||
    (has('own') && early.some((run) => isOf(run, 'asks'))) ||
    (isOf(first, 'asks') && !EXCLAIMS.test(opening.slice(0, 2).join(' ')));
  if (has('asks') && (isMarked || isClear)) return 'question';
  if (!isMarked) return 'remark';
  return has('own') ? 'question' : 'perhaps';
}

/** Whether a message can only be understood with the messages before it. */
export function goesOn(message: string): boolean {
  const { text, runs, has, isOf } = wordingOf(message);
  if (has('them') || isOf(runs[0] ?? '', 'and')) return true;
  if (UNSPACED_FORMS.and.some((part) => text.startsWith(part))) return true;
  return UNSPACED.test(text) && !/\s/.test(text)
    ? [...text].length <= SHORT_CHARS
    : text.split(/\s+/).length <= SHORT_WORDS;
}

/** A message without a known function word can be in any language. `opening`: from its first word after greetings on. */
function wordingOf(message: string) {
  const text = message.trim().normalize('NFKC').replaceAll('’', "'").toLowerCase();
  const runs = runsOf(text);
  const spoken = languagesOf(runs);
  const forms = spoken.length > 0 ? spoken.map((language) => FORMS[language]) : Object.values(FORMS);
  const isOf = (run: string, form: Form) => forms.some((each) => each[form].has(run));
  const has = (form: Form) =>
    runs.some((run) => isOf(run, form)) || UNSPACED_FORMS[form].some((part) => text.includes(part));
  const start = runs.findIndex((run) => !isOf(run, 'and') && !isOf(run, 'phatic'));
  return { text, runs, isOf, has, opening: start < 0 ? [] : runs.slice(start) };
}

function runsOf(text: string): string[] {
  return text.match(/[\p{L}\p{M}]+/gu) ?? [];
}

function hasContent(text: string, runs: string[], isOf: (run: string, form: Form) => boolean): boolean {
  if (UNSPACED.test(text)) {
    const parts = [...UNSPACED_FORMS.phatic, ...UNSPACED_FORMS.moment].sort((a, b) => b.length - a.length);
    const rest = parts.reduce((left, part) => left.replaceAll(part, ' '), text);
    return /[\p{sc=Han}\p{sc=Katakana}\p{sc=Hangul}]/u.test(withoutUnspacedFrames(rest));
  }
  const isFunction = functionWordsIn(runs);
  return runs.some(
    (run) => run.length > 1 && !isFunction(run) && !isOf(run, 'phatic') && !isOf(run, 'moment'),
  );
}

/**
 * `asks`: for a fact. `told`: about what somebody said or knows. `own`: the speaker's own affairs, which they may have told.
 * `moment`: you, us, now. `phatic`: greetings, thanks, laughter. `and`, `them`: continue from what was said before.
 */
type Form = 'asks' | 'told' | 'own' | 'moment' | 'phatic' | 'and' | 'them';

const FORMS: Record<Language, Record<Form, ReadonlySet<string>>> = {
  English: setsOf({
    asks: 'what where when who whom whose which how whats wheres whens whos',
    told: 'remind remember recall forgot forgotten know told said mentioned agreed',
    own: 'i my mine our ours',
    moment: 'you your u shall should lets let today tonight wanna time weather',
    phatic: `hello hi hey bye goodbye good night morning evening afternoon thanks thank haha hahaha lol ok okay
      later see sweet dreams going doing well nice great fine cool yes no sure up`,
    and: 'and but or so ok hey',
    them: 'he she it they him her his hers its them their there',
  }),
  German: setsOf({
    asks: `was wann wo wohin woher wer wen wem wessen welche welcher welches welchen welchem wie wieviel
      wieviele`,
    told: 'erinnere erinnerst erinner weißt weisst vergessen gesagt erzählt nochmal',
    own: 'ich mein meine meinen meinem meiner meines unser unsere unseren unserem unserer',
    moment: `du dir dich dein deine deinen deinem deiner lass lasst lust willst magst möchtest sollen wollen
      kochen machen heute abend spät uhr wetter`,
    phatic: `hallo hi hey moin servus tschüss gute guten guter nacht morgen abend tag danke bitte haha hahaha
      ok okay bis später bald dann geht gehts gut klar schön schöne toll super ja nein schlaf`,
    and: 'und aber oder also',
    them: 'er sie es ihm ihn ihr ihre ihrer ihren ihnen dort damit davon',
  }),
  Spanish: setsOf({
    asks: 'qué cuál cuáles cuándo cuánto cuánta cuántos cuántas dónde adónde quién quiénes cómo',
    told: 'recuérdame recuerdame recuerda recuerdas acuerdas acuérdate olvidé dije dijiste sabes',
    own: 'yo mi mis tengo soy nuestro nuestra nuestros nuestras',
    moment: `tú te ti tu tus estás has haces quieres quiere prefieres puedes vamos cocinamos cenamos comemos
      hacemos hoy noche hora tiempo`,
    phatic: `hola adiós gracias buenas buenos buen noches días tardes día jaja jajaja vale hasta luego pronto
      mañana bien todo tal sí no genial`,
    and: 'y pero o entonces',
    them: 'él ella ellos ellas su sus allí',
  }),
  French: setsOf({
    asks: 'quel quelle quels quelles quoi que quand où qui combien comment',
    told: 'rappelle rappelles souviens souvient souvenez oublié sais dit',
    own: 'je j mon ma mes notre nos',
    moment: 'tu te t toi ton ta tes vous votre on veux peux vas aimes aujourd hui soir heure météo',
    phatic: `bonjour bonsoir bonne nuit soirée journée salut coucou merci haha hahaha ok plus tard demain
      bientôt ça va bien oui non super`,
    and: 'et mais ou alors dis',
    them: 'il elle ils elles lui leur leurs y',
  }),
  Italian: setsOf({
    asks: 'cosa quale quali quando dove quanto quanta quanti quante chi come',
    told: 'ricorda ricordi ricordami dimenticato detto sai',
    own: 'io mio mia miei mie nostro nostra nostri nostre',
    moment: 'tu ti tuo tua tuoi tue vuoi andiamo facciamo mangiamo stai fai oggi stasera tempo',
    phatic: `ciao salve buongiorno buonasera buonanotte buona notte grazie haha ok bene va tutto dopo domani sì
      no`,
    and: 'e ma o allora',
    them: 'lui lei loro suo sua',
  }),
  Portuguese: setsOf({
    asks: 'que quem qual quais quando onde quanto quanta quantos quantas como',
    told: 'lembra lembras lembre esqueci disse sabe sabes',
    own: 'eu meu minha meus minhas nosso nossa nossos nossas',
    moment: 'tu te teu tua você quer queres vamos hoje está vai tempo',
    phatic: `olá oi tchau bom boa dia noite tarde obrigado obrigada haha kkk ok bem tudo até logo amanhã sim
      não`,
    and: 'e mas ou então',
    them: 'ele ela eles elas seu sua',
  }),
  Dutch: setsOf({
    asks: 'wat wanneer waar wie welke welk hoe hoeveel',
    told: 'herinner herinnert vergeten gezegd verteld weet',
    own: 'ik mijn ons onze',
    moment: 'jij je jou jouw u uw zullen wil zin laten vandaag vanavond weer',
    phatic: `hallo hoi dag doei goede goedenacht nacht morgen avond welterusten dank bedankt haha ok gaat goed
      later tot ja nee`,
    and: 'en maar of dus',
    them: 'hij zij ze hem haar hun daar',
  }),
  Russian: setsOf({
    asks: `что чего чему чем кто кого кому кем где куда откуда когда как какой какая какое какие какую какого
      каком каким сколько чей чья чье чьё чьи`,
    told: 'напомни напомните помнишь помните забыл забыла знаешь знаете говорил говорила сказал сказала',
    own: 'я мой моя мое моё мои моего моей моему моим мою наш наша наше наши нашего нашу нашей нашему',
    moment: `ты тебе тебя твой твоя вы вас вам давай давайте пойдем пойдём будем будешь хочешь хотите делаешь
      сегодня вечером погода час времени`,
    phatic: `привет здравствуй пока спасибо спокойной доброй ночи доброе добрый утро вечер день хаха хахаха
      ладно скорого завтра встречи дела хорошо да нет`,
    and: 'а и но',
    them: 'он она оно они его её ее ему ей их им там',
  }),
};

/** The same for Japanese, Chinese and Korean, which do not separate words: parts of a text. */
const UNSPACED_FORMS = listsOf({
  asks: `何 なに なん 誰 だれ どこ いつ どれ どの どんな いくら いくつ は? は？ 什么 什麼 哪 谁 多少 多大 多久 几
    幾 何时 怎么 뭐 무엇 누구 어디 언제 얼마 몇`,
  told: '覚えて 思い出 忘れた っけ 记得 記得 提醒 忘了 知道 기억 까먹',
  own: '私 僕 俺 うちの 我的 我妹 我家 我们的 내 우리',
  moment: `うか ましょう ませんか よう 眠れ 疲れ 今日 今夜 今晩 今何時 元気 調子 何して 你好吗 怎么样 在干 今天
    今晚 要不要 想不想 想吃 好不好 好吗 一起 吧 할까 하자 먹을래 오늘`,
  phatic: `おやすみ おはよう こんにちは こんばんは ありがとう じゃあ はは またね 晚安 早安 早上好 你好 谢谢 哈哈
    再见 안녕 고마 잘 자`,
  and: 'で じゃあ それで 那 그럼',
  them: '彼女 彼 それ そこ あれ 他 她 它 那里 那儿 그녀 그는 그가',
});

function listsOf(forms: Record<Form, string>): Record<Form, string[]> {
  const entries = Object.entries(forms).map(([form, list]) => [form, list.split(/\s+/)]);
  return Object.fromEntries(entries);
}

function setsOf(forms: Record<Form, string>): Record<Form, ReadonlySet<string>> {
  const entries = Object.entries(listsOf(forms)).map(([form, list]) => [form, new Set(list)]);
  return Object.fromEntries(entries);
}
