/** Step 5 of the route: which calls need approval, because a model may obey untrusted text (docs/decisions/0036, 0044). Pure. */
import { isOwnersOrder } from '../../core/authorisation.js';
import { NEEDS_INSTRUCTION } from '../../core/task.js';
import type { AnyTool, Reach, ToolContext } from '../../core/tool.js';
import type { StoredMessage } from '../../core/transcript.js';
import { code, oneLine } from '../quoting.js';

const CHAT_CHARS = 120;

export interface Trust {
  /** The window, its summary or the messages to answer contain untrusted text. */
  isTainted: boolean;
  /** The persona's own text is that of strangers: what reaches out asks first, and nothing is marked. */
  isOfStrangers?: boolean;
  /** Whether a person named this host in their own words. */
  isNamed(host: string): boolean;
}

/** A sentence on why a person has to approve this call; null if nobody has to. */
export async function reasonToAsk(
  tool: AnyTool,
  given: unknown,
  context: ToolContext,
  trust: Trust,
): Promise<string | null> {
  if (tool.risk === 'high') return 'What it does cannot be foreseen, so a person decides.';
  if (context.isTainted !== true && trust.isOfStrangers !== true) return null;
  const reach = await reachOf(tool, given, context);
  if (reach === null) return null;
  const outside = 'The persona has read words from outside, which may have led it to this';
  if (reach.kind === 'chat') {
    // The id is an argument of the call and may be any text.
    const isPlain = /^[\w.@%-]{1,120}$/.test(reach.chatId);
    const chat = isPlain ? reach.chatId : code(oneLine(reach.chatId, CHAT_CHARS));
    return `${outside}; it reaches another chat, ${chat}.`;
  }
  if (trust.isNamed(reach.host)) return null;
  return `${outside}; it reaches ${reach.host}, which nobody named in this conversation.`;
}

async function reachOf(tool: AnyTool, given: unknown, context: ToolContext): Promise<Reach | null> {
  if (tool.reachesOut) return tool.reachesOut(given as never, context);
  // Any tool that writes or sends may name another chat. Ask only if the authorisation could allow it.
  const { chat_id } = given as { chat_id?: unknown };
  const { authorisation } = context;
  if (tool.risk === 'low' || typeof chat_id !== 'string' || chat_id === '' || !authorisation) return null;
  if (chat_id === authorisation.chatId || !(await isOwnersOrder(authorisation))) return null;
  return { kind: 'chat', chatId: chat_id };
}

/** The owners' decision about a run. `nobody`: there is no owner to ask. */
export type RunApproval = 'unasked' | 'allowed' | 'refused' | 'nobody';

type RunDecision =
  /** Allowed with the whole run. */
  | 'approved'
  /** Ask owners about the whole run first. */
  | 'ask'
  | 'refused'
  /** Decide as for any other call. */
  | 'as usual';

export function runApprovalFor(run: RunApproval | undefined, tool: AnyTool): RunDecision {
  if (run === undefined || (tool.risk !== 'high' && !tool.isExternal)) return 'as usual';
  if (run === 'allowed') return 'approved';
  if (run === 'unasked') return 'ask';
  return run === 'nobody' || tool.isExternal ? 'refused' : 'as usual';
}

/** The result of a refused call; `run`: the decision by then. */
export function needsApprovalText({ name, isExternal }: AnyTool, run: RunApproval | undefined): string {
  const what = isExternal ? 'it leaves this machine' : 'it runs what nobody has looked at';
  const whose =
    run === 'nobody'
      ? 'no owner can be asked about this task'
      : 'owners were asked about this task and have not allowed it';
  return refusal(name, what, whose);
}

/** The result for an external tool that no agent has on this task. */
export function withheldText({ name }: AnyTool): string {
  return refusal(name, 'it leaves this machine', 'you do not have it on this task');
}

function refusal(name: string, what: string, whose: string): string {
  return `${NEEDS_INSTRUCTION}: ${name} was not run, for ${what}, and ${whose}. Do without it, and say so in your report.`;
}

/** Whether a person named this host in their own words. */
export function isNamed(address: string, messages: readonly StoredMessage[]): boolean {
  const host = hostOf(address);
  return (
    host !== null &&
    messages.some(({ author, words, text, mentions, tainted }) => {
      const isOwn = !tainted && author.kind === 'person' && !author.bot;
      return isOwn && hostsIn(words ?? text, mentions).includes(host);
    })
  );
}

/** A quick test that most texts fail. */
const MAY_NAME = /[^\s.]\.[^\s.]|\/\//;
const URL_LIKE = /https?:\/\/[^\s<>"'`)\]}“”„«»‘’‚「」『』（）【】《》]+/gi;
/** Also emphasis marks. */
const ENDS_SENTENCE = '.,;:!?…。，、！？*_~';
/** `example.com`, `münchen.de:8080`, `www.example.museum/path`: as a separate word. */
const DOMAIN =
  /(?<![\p{L}\p{N}\p{M}_@/\\.~#$&=+%-])[\p{L}\p{N}](?:[\p{L}\p{N}\p{M}-]*[\p{L}\p{N}\p{M}])?(?:\.[\p{L}\p{N}](?:[\p{L}\p{N}\p{M}-]*[\p{L}\p{N}\p{M}])?)+(?![\p{L}\p{N}\p{M}_@\\(-]|\.[\p{L}\p{N}])/gu;
/** Maximum length of a host name and of one label (RFC 1035). */
const LONGEST_HOST = 253;
const LONGEST_LABEL = 63;

/**
 * Top-level domains by which a bare name counts as an address: countries (ISO 3166-1 as delegated by IANA), the usual others, and
 * those RFC 2606 and RFC 6762 reserve for examples and home networks. Excluded are those better known as file extensions: ac, ai,
 * am, as, bz, cc, cl, do, la, md, mk, ml, mm, pl, pm, ps, py, rs, sh, so, st, sv, tf, app, mov, name, zip.
 */
const TOP_LEVEL = new Set(
  `ad ae af ag al ao aq ar at au aw ax az ba bb bd be bf bg bh bi bj bm bn bo br bs bt bw by ca cd cf cg ch ci ck cm cn co
  cr cu cv cw cx cy cz de dj dk dm dz ec ee eg er es et eu fi fj fk fm fo fr ga gd ge gf gg gh gi gl gm gn gp gq gr gs gt gu
  gw gy hk hm hn hr ht hu id ie il im in io iq ir is it je jm jo jp ke kg kh ki km kn kp kr kw ky kz lb lc li lk lr ls lt lu
  lv ly ma mc me mg mh mn mo mp mq mr ms mt mu mv mw mx my mz na nc ne nf ng ni nl no np nr nu nz om pa pe pf pg ph pk pn pr
  pt pw qa re ro ru rw sa sb sc sd se sg si sk sl sm sn sr ss su sx sy sz tc td tg th tj tk tl tm tn to tr tt tv tw tz ua ug
  uk us uy uz va vc ve vg vi vn vu wf ws ye yt za zm zw com org net edu gov mil int info biz pro aero coop museum jobs mobi
  travel tel asia cat post xxx online site website shop store blog cloud tech space news world email social club xyz dev page
  art design agency studio wiki network academy berlin hamburg koeln london paris wien bayern swiss arpa onion example local
  lan internal рф укр бг бел срб қаз 中国 中國 香港 台灣 한국 ไทย भारत`.split(/\s+/),
);

/** The hosts that a text names. `except`: parts of it that are not its writer's words. */
export function hostsIn(text: string, except: readonly string[] = []): string[] {
  if (!MAY_NAME.test(text)) return [];
  const own = ownWords(text, except);
  const urls = [...own.matchAll(URL_LIKE)].map(([url]) => withoutEnd(url));
  const bare = [...own.replaceAll(URL_LIKE, ' ').matchAll(DOMAIN)].flatMap(([name]) =>
    isAddress(name) ? [name] : [],
  );
  return [...urls, ...bare].flatMap((address) => hostOf(address) ?? []);
}

/** Strips the punctuation of the surrounding sentence. */
function withoutEnd(url: string): string {
  let end = url.length;
  while (ENDS_SENTENCE.includes(url[end - 1] ?? ' ')) end--;
  return url.slice(0, end);
}

/** Without quoted lines, labels in brackets (which name files and contacts), and mentioned names. */
function ownWords(text: string, except: readonly string[]): string {
  let own = text;
  for (const name of except) own = own.replaceAll(name, ' @ ');
  return own
    .split('\n')
    .filter((line) => !/^\s*(?:>|＞|&gt;)/.test(line))
    .join('\n')
    .replaceAll(/\[[^[\]\n]*\]/g, ' @ ');
}

function isAddress(name: string): boolean {
  const labels = name.toLowerCase().split('.');
  if (name.length > LONGEST_HOST || labels.some(({ length }) => length > LONGEST_LABEL)) return false;
  const [top = '', second = ''] = labels.toReversed();
  // A missing space after a sentence: `Wait.Is it so?`
  if (/^\p{Lu}\p{Ll}/u.test(name.slice(-top.length))) return false;
  if (labels[0] === 'www' && labels.length > 2) return /^\p{L}{2,}$/u.test(top);
  return TOP_LEVEL.has(top) && /\p{L}/u.test(second);
}

/** The host as in a URL: lower case, without a port, in ASCII. */
export function hostOf(address: string): string | null {
  const url = /^https?:\/\//i.test(address) ? address : `http://${address}`;
  try {
    return new URL(url).hostname.replace(/\.$/, '');
  } catch {
    return null;
  }
}
