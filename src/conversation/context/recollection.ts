/**
 * Step 4 of the route: automatic recall of a few earlier lines for a turn, searched by the words of the batch. The form of a
 * message (question, remark, small talk) decides how relevant a line must be.
 */
import { describe } from '../../core/errors.js';
import { functionWordsIn, type Language, languagesOf, withoutUnspacedFrames } from '../../core/phrase.js';
import { isFromOutside, type RecallMoment, recalledLine, type Scope } from '../../core/recall.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';

/** All lines together, in characters. */
const BUDGET = 3_000;
const MOST_LINES = 8;
/** More than needed, because some hits are skipped. */
const MOST_HITS = 2 * MOST_LINES;
/**
 * Minimum relevance; lines below it distract more than they help. Low for a question, because forgetting is worse than a
 * superfluous line; high for a remark, which needs no memories. docs/recall.md has the figures.
 */
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

/**
 * Returns the lines in order of time; empty if nothing relevant was found. An error in recall never prevents a reply. `before`: the
 * messages before the batch, oldest first; `shown`: the memory already in the prompt.
 */
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
    const { hits } = await recall.search(scope, {
      ...query,
      text,
      limit: MOST_HITS,
      ...(around === '' ? {} : { around }),
    });
    const asked = new Set(batch.map((message) => wordsOf(message.text)));
    const best = hits.reduce((most, { relevance }) => Math.max(most, relevance), 0);
    const floor =
      asking === 'question' ? Math.min(FLOORS.question, Math.max(LEAST, best * NEAR_BEST)) : FLOORS[asking];
    const chosen = new Set<string>();
    const lines: { at: number; line: string }[] = [];
    let chars = 0;
    let rare = 0;
    let outside = false;
    for (const hit of hits) {
      // Skips earlier copies of the same question: the answer is wanted, not the question.
      const tellsNothing =
        hit.source.kind === 'file' ? shown.includes(hit.text.trim()) : asked.has(wordsOf(hit.text));
      const isBelow = hit.relevance < floor;
      if (tellsNothing || (isBelow && (hit.rare !== true || rare >= MOST_RARE))) continue;
      if (isBelow) rare++;
      // An answer needs its question to be understood.
      const answered =
        hit.answers !== undefined && !asked.has(wordsOf(hit.answers.text)) ? [hit.answers] : [];
      const told = [...answered, hit].filter((each) => !chosen.has(recalledLine(each, zone)));
      const length = told.reduce((sum, each) => sum + recalledLine(each, zone).length + 1, 0);
      if (chars + length > BUDGET || lines.length + told.length > MOST_LINES) continue;
      chars += length;
      outside ||= told.some(isFromOutside);
      for (const each of told) {
        const line = recalledLine(each, zone);
        chosen.add(line);
        lines.push({ at: each.at ?? 0, line });
      }
      if (lines.length === MOST_LINES) break;
    }
    const inOrder = lines.sort((a, b) => a.at - b.at).map(({ line }) => line);
    return { lines: inOrder, isFromOutside: outside };
  } catch (error) {
    log.error({ ...scope, why: describe(error) }, 'recall failed; answering without');
    return NOTHING;
  }
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

const RUN = /[\p{L}\p{M}]+/gu;
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}]/u;
const MARK = /[?？؟¿]/;

export function formOf(message: string): MessageForm {
  const text = plainly(message);
  const has = kindsIn(text);
  if (has('told')) return 'question';
  if (!has('own') && (has('phatic') || has('moment')) && !hasContent(text)) return 'small talk';
  // Without a question mark, only text that begins like a question or asks about the speaker's own affairs early ("c'est quand mon
  // train"), unlike "You won't believe how tired I am".
  const opening = runsOf(text.split(/[,.;:!]/, 1)[0] ?? '').slice(0, OPENING_WORDS);
  const asksOfOwn = has('own') && kindsIn(opening.join(' '))('asks');
  const isClear =
    UNSPACED.test(text) || asksOfOwn || (opensWith(text, 'asks') && !opensWith(text, 'exclaims'));
  const asks = has('asks') && (MARK.test(text) || isClear);
  if (has('moment') && !has('own')) return 'moment';
  if (asks) return 'question';
  if (!MARK.test(text)) return 'remark';
  return has('own') ? 'question' : 'perhaps';
}

/** A question without a mark has its question word among these. */
const OPENING_WORDS = 3;

/** Below this length a question does not say what it is about. */
const SHORT_WORDS = 5;
const SHORT_CHARS = 10;

/** Whether a message can only be understood with what was said before it. */
export function goesOn(message: string): boolean {
  const text = plainly(message);
  if (kindsIn(text)('them') || opensWith(text, 'and')) return true;
  return UNSPACED.test(text) && !/\s/.test(text)
    ? [...text].length <= SHORT_CHARS
    : text.split(/\s+/).length <= SHORT_WORDS;
}

function plainly(message: string): string {
  return message.trim().normalize('NFKC').replaceAll('’', "'").toLowerCase();
}

function runsOf(text: string): string[] {
  return text.match(RUN) ?? [];
}

function kindsIn(text: string): (kind: Form) => boolean {
  const runs = runsOf(text);
  const isOf = formsOf(runs);
  return (kind) =>
    runs.some((run) => isOf(run, kind)) || UNSPACED_FORMS[kind].some((part) => text.includes(part));
}

/** A message without a known function word can be in any language. */
function formsOf(runs: string[]): (run: string, kind: Form) => boolean {
  const spoken = languagesOf(runs);
  const forms = Object.entries(FORMS).filter(
    ([language]) => spoken.length === 0 || spoken.some((each) => each === language),
  );
  return (run, kind) => forms.some(([, form]) => form[kind].has(run));
}

/** Tests the first word after greetings and conjunctions. */
function opensWith(text: string, kind: Form): boolean {
  const runs = runsOf(text);
  const isOf = formsOf(runs);
  const opening = kind === 'and' ? runs[0] : runs.find((run) => !isOf(run, 'and') && !isOf(run, 'phatic'));
  if (opening === undefined) return false;
  if (kind !== 'exclaims')
    return isOf(opening, kind) || UNSPACED_FORMS[kind].some((part) => text.startsWith(part));
  // "What a day", "was für ein Tag", "quelle belle journée": it takes one or two words, depending on the language.
  const next = runs[runs.indexOf(opening) + 1] ?? '';
  return isOf(`${opening} ${next}`, kind) || isOf(opening, kind);
}

/** Whether a word is left that says what the message is about. */
function hasContent(text: string): boolean {
  if (UNSPACED.test(text)) {
    const parts = [...UNSPACED_FORMS.phatic, ...UNSPACED_FORMS.moment].sort((a, b) => b.length - a.length);
    const rest = parts.reduce((left, part) => left.replaceAll(part, ' '), text);
    return /[\p{sc=Han}\p{sc=Katakana}\p{sc=Hangul}]/u.test(withoutUnspacedFrames(rest));
  }
  const runs = runsOf(text);
  const isFunction = functionWordsIn(runs);
  const isOf = formsOf(runs);
  return runs.some(
    (run) => run.length > 1 && !isFunction(run) && !isOf(run, 'phatic') && !isOf(run, 'moment'),
  );
}

/**
 * `asks`: for a fact. `exclaims`: opens an exclamation that begins like a question. `told`: about what somebody said or knows.
 * `own`: the speaker's own affairs, which they may have told. `moment`: you, us, now. `phatic`: greetings, thanks, laughter. `and`,
 * `them`: continue from what was said before.
 */
type Form = 'asks' | 'exclaims' | 'told' | 'own' | 'moment' | 'phatic' | 'and' | 'them';

const FORMS: Record<Language, Record<Form, ReadonlySet<string>>> = {
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
const UNSPACED_FORMS: Record<Form, readonly string[]> = {
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
