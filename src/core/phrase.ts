/** A phrase to forget: found ignoring case, white space and Unicode composition. Words to search for. And function words by language. */
import { cutAt } from './cut.js';

/** Replaces forgotten words. Phrases never match in or across it, so forgetting "forgotten" is harmless. */
export const FORGOTTEN = '[forgotten]';

interface TextRange {
  /** In UTF-16 units. */
  start: number;
  end: number;
}

export interface Phrase {
  /** As written, trimmed. */
  text: string;
  isIn(words: string): boolean;
  rangesIn(words: string): TextRange[];
  /** The identical string if there are no occurrences. */
  replacedIn(words: string, by: string): string;
}

const SPACE = '[\\s\\u0085]';

/** Throws RangeError for a text without words. */
export function phraseOf(text: string): Phrase {
  const parts = text
    .normalize('NFC')
    .split(new RegExp(`${SPACE}+`, 'u'))
    .filter((part) => part !== '');
  if (parts.length === 0) throw new RangeError('a phrase needs words');
  const source = parts.map(literal).join(`${SPACE}+`);
  return { text: text.trim(), isIn, rangesIn, replacedIn };

  function* find(composed: string): Generator<TextRange> {
    let at = 0;
    for (const stretch of composed.split(FORGOTTEN)) {
      for (const { 0: found, index } of stretch.matchAll(new RegExp(source, 'giu'))) {
        yield { start: at + index, end: at + index + found.length };
      }
      at += stretch.length + FORGOTTEN.length;
    }
  }

  function isIn(words: string): boolean {
    return find(words.normalize('NFC')).next().done !== true;
  }

  function rangesIn(words: string): TextRange[] {
    const { composed, original } = compose(words);
    const ranges: TextRange[] = [];
    for (const found of find(composed)) {
      const range = original(found);
      const last = ranges.at(-1);
      // Two matches within one composed letter.
      if (last !== undefined && range.start < last.end) last.end = Math.max(last.end, range.end);
      else ranges.push(range);
    }
    return ranges;
  }

  function replacedIn(words: string, by: string): string {
    let replaced = '';
    let done = 0;
    for (const { start, end } of rangesIn(words)) {
      replaced += words.slice(done, start) + by;
      done = end;
    }
    return done === 0 ? words : replaced + words.slice(done);
  }
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, '\\$&');
}

/** A letter with the marks or Hangul parts that composition joins to it; plain ASCII in longer runs. */
const LATER = '[\\p{M}\\u1160-\\u11ff\\u{16d67}]';
const PIECE = new RegExp(`[\\0-\\x7f]+(?!${LATER})|[^]${LATER}*`, 'gu');

/** `original` gives the text behind a range of the composed form: whole pieces where the two differ. */
function compose(words: string): { composed: string; original(range: TextRange): TextRange } {
  if (words.normalize('NFC') === words) return { composed: words, original: (range) => range };
  let composed = '';
  let at = 0;
  /** For each unit of the composed form. */
  const from: TextRange[] = [];
  for (const [piece] of words.matchAll(PIECE)) {
    const form = piece.normalize('NFC');
    for (let n = 0; n < form.length; n++) {
      const start = form === piece ? at + n : at;
      from.push({ start, end: form === piece ? start + 1 : at + piece.length });
    }
    composed += form;
    at += piece.length;
  }
  return {
    composed,
    original: ({ start, end }) => ({ start: from[start]?.start ?? at, end: from[end - 1]?.end ?? at }),
  };
}

// Words to search for: found anywhere in a text, whatever the case, accents, width and vowel signs.

export interface SoughtWords {
  /** Whether the text holds each of the words. */
  isIn(text: string): boolean;
  /** In one line: the first of the words that occurs, with about this many characters around it. */
  excerptOf(text: string, around: number): string;
}

/** More would only make a search slow. */
const MOST_WORDS = 12;

/** null for a text without words. */
export function wantedIn(query: string): SoughtWords | null {
  const all = query.split(/\s+/u).map(folded);
  const words = [...new Set(all)].filter((word) => word !== '').slice(0, MOST_WORDS);
  if (words.length === 0) return null;

  function isIn(text: string): boolean {
    const plain = folded(text);
    return words.every((word) => plain.includes(word));
  }

  function excerptOf(text: string, around: number): string {
    const start = Math.max(0, firstIn(text, words) - Math.floor(around / 2));
    // Half a surrogate pair at the start would be shown as a sign of its own.
    const from = start > 0 && /[\uDC00-\uDFFF]/.test(text.charAt(start)) ? start + 1 : start;
    const piece = cutAt(text.slice(from), around);
    const line = piece.replace(/[\s\p{Cc}]+/gu, ' ').trim();
    return `${from > 0 ? '…' : ''}${line}${from + piece.length < text.length ? '…' : ''}`;
  }

  return { isIn, excerptOf };
}

/** Accents, and the vowel signs that Hebrew and Arabic leave out as often as not; Indic and Japanese ones are letters. */
const MARKS = /(?![\u3099\u309a])\p{Mn}(?<=[\p{sc=Zinh}\p{sc=Hebr}\p{sc=Arab}])|\u0640/gu;
const NOT_ASCII = /[^\0-\x7f]/;

function folded(text: string): string {
  const small = text.toLowerCase();
  if (!NOT_ASCII.test(small)) return small;
  return small.normalize('NFKD').replace(MARKS, '').replaceAll('ß', 'ss').replaceAll('ς', 'σ');
}

/** Where the first of the words stands in the text as written; 0 if none does. */
function firstIn(text: string, words: readonly string[]): number {
  const plain = folded(text);
  const places = words.map((word) => plain.indexOf(word)).filter((place) => place >= 0);
  const place = places.length === 0 ? 0 : Math.min(...places);
  if (plain.length === text.length && !NOT_ASCII.test(text)) return place;
  let [at, done] = [0, 0];
  for (const letter of text) {
    done += folded(letter).length;
    if (done > place) break;
    at += letter.length;
  }
  return at;
}

// Function words, removed from questions only, and only in the question's language, because "son" and "die" have a
// meaning in others.

export type Language =
  | 'English'
  | 'German'
  | 'Spanish'
  | 'French'
  | 'Italian'
  | 'Portuguese'
  | 'Dutch'
  | 'Russian';

const LANGUAGES: Record<Language, ReadonlySet<string>> = {
  English:
    words(`what when where who whom whose which why how is are was were be been am do does did done has have had will would
    can could shall should may might must the a an of to in on at for from by with about and or but not my your our his
    her their its i me you he she it we us they them this that these those there again called call name named remind
    remember recall know tell please also just still ever now later
    much many kind sort type s t m re ve ll d whats wheres whens whos`),
  German:
    words(`was wann wo wohin woher wer wen wem wessen welche welcher welches welchen welchem wie warum wieso weshalb womit
    worauf ist sind war waren sein bin bist seid hat habe haben hast hatte hatten habt wird werde werden wirst wurde
    kann kannst können muss musst müssen soll sollen sollte will wollen wollte möchte darf der die das den dem des ein
    eine einen einem einer eines und oder aber nicht kein keine keinen mein meine meinen meinem meiner meines dein deine
    deinen unser unsere unseren unserem unserer ihr ihre sein seine seinen ich mich mir du dich dir er sie es wir uns
    euch ihn ihm ihnen man von vom zu zum zur in im ins an am auf für mit bei beim nach aus über um unter vor noch mal
    nochmal doch denn wieder schon auch so heißt heisst heißen hieß hiess name namens nennt genannt weißt weisst wissen
    erinnere erinnerst erinnern bitte sag sage sagen nochmals eigentlich gerade jetzt da dort lautet gleich viel viele`),
  Spanish:
    words(`qué que cuál cual cuáles cuales cuándo cuando cuánto cuanto cuánta cuántos cuantos cuántas dónde donde adónde quién
    quien quiénes cómo como por para porqué es son era eran fue fueron ser soy eres está están estaba estoy estás estar
    he has ha hemos han había hay tengo tiene tienes tenía tener el la los las un una unos unas de del al a en con sin
    sobre y e o u ni no sí mi mis mí tu tus su sus nuestro nuestra nuestros nuestras yo me te se nos lo le les él ella
    ellos ellas esto esta este ese esa eso llama llaman llamas llamaba llamo nombre recuérdame recuerdame recuerda
    recuerdas acuerdas acuerda acordarse sabes dime favor otra vez también ya muy más ahora entonces tener debo puedo
    puede soy`),
  French:
    words(`que quoi qui quel quelle quels quelles quand où ou comment combien pourquoi dont est sont était étaient être suis es
    sommes êtes ai as a avons avez ont avait avais aurai aura avoir fait fais faire le la les un une des du de d l au aux
    en dans sur sous avec sans pour par chez et mais donc ne pas non mon ma mes ton ta tes son sa ses notre nos votre vos
    leur leurs je j me m moi tu te t toi il elle on nous vous ils elles se s lui y ce c cet cette ces ça cela qu
    appelle appelles appelait appeler nom rappelle rappelles souviens souvient sais dis svp stp plaît encore déjà
    maintenant aussi bien très plus quelque`),
  Italian:
    words(`che cosa chi quale quali quando dove come quanto quanta quanti quante perché è sono era erano essere ho hai ha
    abbiamo avete hanno aveva il lo la i gli le un uno una di del della dello dei delle da dal a al alla in nel nella con
    su per tra e o ma non mio mia miei mie tuo tua tuoi tue suo sua suoi sue nostro nostra nostri nostre io mi me tu ti
    te si ci vi lui lei noi voi loro chiama chiamano chiamava nome ricorda ricordi ricordami sai dimmi favore ancora già`),
  Portuguese:
    words(`o que quem qual quais quando onde como quanto quanta quantos por porque é são era ser sou está estão estava tem
    tenho tinha há os as um uma de do da dos das em no na nos nas com sem para e ou mas não meu minha meus minhas teu tua
    seu sua nosso nossa nossos nossas eu me tu te você se ele ela nós eles elas chama chamam nome lembra lembras lembre
    sabe sabes diz favor já ainda também`),
  Dutch:
    words(`wat wanneer waar wie welke welk hoe waarom is zijn was waren ben bent heb hebt heeft had hebben wordt worden kan
    moet zal de het een van naar in op aan voor met bij uit over en of maar niet geen mijn jouw zijn haar ons onze hun ik
    mij me jij je u hij zij ze wij we er dat dit die deze heet heten naam herinner weet zeg alsjeblieft nog weer ook`),
  Russian:
    words(`что чего чему кто кого кому кем где куда откуда когда как какой какая какое какие какую какого каком каким сколько
    почему зачем чей чья чье чьё у в во на о об от до за из к ко с со по про для без и а но или не ни же ли бы то это
    этот эта эти быть был была было были есть будет я мне меня мной мы нам нас ты тебе тебя вы вам вас он она оно они его
    ее её ему ей их им мой моя мое моё мои моего моей моему моим мою твой твоя наш наша наше наши нашего нашу нашей
    нашему свой свою зовут звали называется имя напомни помнишь помните помню знаешь знаете скажи пожалуйста опять еще
    ещё уже там тут сейчас теперь мог нужно надо`),
};

/** For Japanese and Chinese, which do not separate words. */
const UNSPACED =
  /(?:覚え(?:て(?:る|いる|ます)?)|思い出(?:させて|して)|教えて|何(?:ですか|だっけ|だった|歳)?|誰|だれ|どこ|いつ|どれ|どの|どんな|いくら|いくつ|ですか|でしたか|だっけ|って何|私(?:の|たちの)?|僕(?:の)?|俺(?:の)?|うちの|彼女|彼|住んで(?:る|いる)?|名前|什么(?:时候)?|哪(?:里|儿|个)?|谁|几|多少|怎么|吗|呢|我们的|我的|我|你|他|她|还?记得|提醒我?|叫|是|뭐|누구|어디|언제|내|우리)/gu;

/** Chinese only: in Japanese the same characters are parts of words. */
const CHINESE_PARTICLES = /[的了在是和有过就都也很这那里些么]/gu;
const KANA = /[\p{sc=Hiragana}\p{sc=Katakana}]/u;

/** Those with most function words in a text. `runs`: lower-case runs of letters. */
export function languagesOf(runs: string[]): Language[] {
  const counts = (Object.keys(LANGUAGES) as Language[]).map((language) => ({
    language,
    count: runs.filter((run) => LANGUAGES[language].has(run)).length,
  }));
  const most = Math.max(...counts.map(({ count }) => count));
  return most === 0 ? [] : counts.filter(({ count }) => count === most).map(({ language }) => language);
}

export function functionWordsIn(runs: string[]): (word: string) => boolean {
  const spoken = languagesOf(runs);
  return (word) => spoken.some((language) => LANGUAGES[language].has(word));
}

/** Unchanged if nothing would be left. */
export function withoutUnspacedFrames(text: string): string {
  const framed = text.replace(UNSPACED, ' ');
  const rest = KANA.test(text) ? framed : framed.replace(CHINESE_PARTICLES, ' ');
  return /[\p{sc=Han}\p{sc=Katakana}\p{sc=Hangul}]/u.test(rest) ? rest : text;
}

function words(list: string): ReadonlySet<string> {
  return new Set(list.split(/\s+/));
}
