/** Model servers for the setup: those on this machine, and one request that shows whether a server answers. */
import { lookup as lookUp } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { cutAt, printableLine } from './core/cut.js';
import { describe, Fault } from './core/errors.js';
import { addressOf, hostOf, type LookupFor, type Outward, reachedBy } from './core/network.js';
import type { FoundServer, Tried } from './core/setup.js';
import { createRedactor } from './operating/redact.js';

/** Where these programs listen unless told otherwise. */
export const USUAL_PORTS: Record<string, number> = { Ollama: 11434, 'LM Studio': 1234, 'llama.cpp': 8080 };

const FIND_MS = 1_500;
const TRY_MS = 60_000;
const MOST_MODELS = 200;
/** Of a server's own words. */
const MOST_SHOWN = 200;
const MOST_BYTES = 1_000_000;
/** Of an answer to a try, which is searched anew with each piece. */
const MOST_TRIED = 64_000;

export async function findServers(
  ports: Record<string, number>,
  signal?: AbortSignal,
): Promise<FoundServer[]> {
  const found = await Promise.all(
    Object.entries(ports).map(([name, port]) => findServer(name, port, signal)),
  );
  return found.filter((each) => each !== null);
}

async function findServer(name: string, port: number, signal?: AbortSignal): Promise<FoundServer | null> {
  const address = `http://127.0.0.1:${port}/v1`;
  const patience = AbortSignal.timeout(FIND_MS);
  try {
    const response = await fetch(`${address}/models`, {
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, patience]) : patience,
    });
    if (!response.ok) return null;
    const list: unknown = JSON.parse(await textOf(response, MOST_BYTES));
    const models = modelsIn(list);
    // Any program may listen there: only a list of models makes it a model server.
    return models && { name, address, models };
  } catch {
    return null;
  }
}

function modelsIn(list: unknown): string[] | null {
  const { data } = Object(list) as { data?: unknown };
  if (!Array.isArray(data)) return null;
  const ids = data.map((each) => (Object(each) as { id?: unknown }).id);
  return ids.filter((id) => typeof id === 'string').slice(0, MOST_MODELS);
}

export interface ServerToTry {
  address: string;
  key: string | null;
  model: string;
  headers: Record<string, string>;
}

/** Asks for one word, and is content with the first piece of an answer. Never throws. */
export async function tryServer(
  { address, key, model, headers }: ServerToTry,
  outward: Outward,
  secrets: readonly string[],
): Promise<Tried> {
  const clean = createRedactor([...secrets, ...(key === null ? [] : [key])]);
  const say = (words: string) => cutAt(printableLine(clean(words)), MOST_SHOWN);
  try {
    const { url, headers: login } = addressOf(address, '/chat/completions');
    const response = await outward.fetch({ lookupFor })(url, {
      method: 'POST',
      redirect: 'error',
      headers: {
        'content-type': 'application/json',
        ...login,
        ...headers,
        ...(key !== null && { authorization: `Bearer ${key}` }),
      },
      body: JSON.stringify({
        model,
        stream: true,
        messages: [{ role: 'user', content: 'Answer with the single word: ready' }],
      }),
      signal: AbortSignal.timeout(TRY_MS),
    });
    const text = await textOf(response, MOST_TRIED, (so) => response.ok && isAnswer(so));
    if (response.ok && isAnswer(text)) return { works: true, says: model, warnings: [] };
    const words = wordsIn(text) || 'it sent no answer of a model';
    return { works: false, says: say(response.ok ? words : `${response.status}: ${words}`) };
  } catch (error) {
    return { works: false, says: say(describe(error)) };
  }
}

/** As a document, or in server-sent events. */
function isAnswer(text: string): boolean {
  return /"choices"\s*:\s*\[\s*\{/.test(text);
}

function wordsIn(text: string): string {
  try {
    const { error, message } = Object(JSON.parse(text.replace(/^data:\s*/, ''))) as Record<string, unknown>;
    const inner = (Object(error) as { message?: unknown }).message ?? error ?? message;
    if (typeof inner === 'string') return inner;
  } catch {
    // Not JSON: its text, without the marks of a page.
  }
  return withoutMarks(text);
}

/** Of a page, whose scripts and styles may have no end. */
function withoutMarks(page: string): string {
  const [before = '', ...blocks] = page.split(/<(?:script|style)/i);
  const behind = blocks.flatMap((block) => block.split(/<\/(?:script|style)>/i).slice(1));
  return [before, ...behind]
    .join(' ')
    .replace(/<[^<>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim();
}

async function textOf(response: Response, most: number, isEnough = (_: string) => false): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const piece of response.body ?? []) {
    text += decoder.decode(piece as Uint8Array, { stream: true });
    if (text.length > most || isEnough(text)) break;
  }
  return text;
}

/** The addresses under which clouds hand out the keys of a machine. */
const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
linkLocal.addSubnet('fd00:ec2::', 32, 'ipv6');

const REFUSED = 'the address is link-local, where no model server is';

function isLinkLocal(address: string): boolean {
  const reached = reachedBy(address);
  return isIP(reached) === 4 ? linkLocal.check(reached) : linkLocal.check(reached, 'ipv6');
}

/** Throws Fault `configuration` for an address that is not tried. A name that is not found now may be found later. */
export async function refuseLinkLocal(address: string): Promise<void> {
  if (!URL.canParse(address)) return;
  const host = hostOf(new URL(address));
  const found = isIP(host) === 0 ? await lookup(host, { all: true }).catch(() => []) : [{ address: host }];
  if (found.some((each) => isLinkLocal(each.address))) throw new Fault('configuration', REFUSED);
}

/** A name is checked by its addresses, so that it cannot lead elsewhere in between. */
const lookupFor: LookupFor = async ({ host }) => {
  if (isIP(host) !== 0 && isLinkLocal(host)) throw new Error(REFUSED);
  return checkedLookup;
};

const checkedLookup: LookupFunction = (name, options, done) =>
  lookUp(name, { ...options, all: true }, (error, addresses) => {
    if (error) return done(error, []);
    if (addresses.some(({ address }) => isLinkLocal(address))) return done(new Error(REFUSED), []);
    const [first] = addresses;
    if (options.all) done(null, addresses);
    else done(null, first?.address ?? '', first?.family);
  });
