/**
 * Downloads a file over HTTP, with a size limit and a time-out for silent servers. Only public servers are
 * contacted, wherever a link or redirect leads, except for the server named in the configuration.
 */
import { lookup } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { LookupFunction } from 'node:net';
import type { FetchResult } from '../../core/channel.js';
import { type Clock, onAbort } from '../../core/clock.js';
import { isPublicAddress, type Outward, PRIVATE, refusalOf } from '../../core/network.js';

/** A link that must not be followed. The message gives the reason, without the link. */
class NotFollowed extends Error {}

/** Resolves only to public addresses, for use by the socket itself. `resolve`: the system's lookup. */
export function publicLookup(resolve: typeof lookup = lookup): LookupFunction {
  return (name, options, done) => {
    resolve(name, { ...options, all: true }, (error, found) => {
      if (error) return done(error, '');
      const open = found.filter(({ address }) => isPublicAddress(address));
      const [first] = open;
      if (first === undefined) return done(new NotFollowed(PRIVATE), '');
      if (options.all) done(null, open);
      else done(null, first.address, first.family);
    });
  };
}

/** `reason` never contains the address, which may hold a token. `gone`: the link must not be followed. */
type Download =
  | FetchResult
  /** The server answered with an error status. */
  | { kind: 'refused'; status: number; reason: string };

export interface DownloadAsk {
  /** The server's name for operators: "Telegram's file server". */
  server: string;
  maxBytes: number;
  outward: Outward;
  /** Ends the download: the caller sets the overall deadline. */
  signal: AbortSignal;
  headers?: Record<string, string>;
  /** How long the server may stay silent, before and during its answer. */
  silence?: { ms: number; clock: Clock };
  /** Origins from the configuration: may be private, and without https. */
  trusted?: readonly string[];
}

const FIRST_BYTES = 65_536;
const MOST_REDIRECTS = 5;
const REDIRECTS = [301, 302, 303, 307, 308];

/** Never rejects. */
export async function download(address: string, ask: DownloadAsk): Promise<Download> {
  const { server, signal, silence } = ask;
  const over = new AbortController();
  const end = () => over.abort();
  const unlisten = onAbort(signal, end);
  let cancelSilence = silence?.clock.after(silence.ms, end);
  const heard = () => {
    cancelSilence?.();
    cancelSilence = silence?.clock.after(silence.ms, end);
  };
  try {
    const response = await followed(address, ask, over.signal);
    return await read(response, ask, heard);
  } catch (error) {
    if (over.signal.aborted) {
      return { kind: 'unreachable', reason: `${server} did not answer in time, or was not waited for` };
    }
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof NotFollowed) {
      return { kind: 'gone', reason: `a link to ${server} is not followed: ${reason}` };
    }
    return { kind: 'unreachable', reason: `the connection to ${server} broke: ${reason}` };
  } finally {
    cancelSilence?.();
    unlisten();
    // Closes the connection instead of reading the rest.
    over.abort();
  }
}

/** The first response that is no redirect. */
async function followed(address: string, ask: DownloadAsk, signal: AbortSignal): Promise<IncomingMessage> {
  let url = parsed(address);
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const response = await open(url, ask, signal);
    const { location } = response.headers;
    if (!REDIRECTS.includes(response.statusCode ?? 0) || location === undefined) return response;
    response.destroy();
    url = parsed(location, url.href);
  }
  throw new NotFollowed('it leads from one address to the next');
}

function parsed(address: string, base?: string): URL {
  if (!URL.canParse(address, base)) throw new NotFollowed('it is no address');
  return new URL(address, base);
}

function open(url: URL, { headers = {}, trusted = [], outward }: DownloadAsk, signal: AbortSignal) {
  const refusal = refusalOf(url, trusted);
  if (refusal !== null) throw new NotFollowed(refusal);
  const secure = url.protocol === 'https:';
  const agent = outward.agent(secure, trusted.includes(url.origin) ? {} : { lookup: publicLookup() });
  return new Promise<IncomingMessage>((resolve, reject) => {
    const sent = (secure ? httpsRequest : httpRequest)(url, {
      headers: { ...headers, 'accept-encoding': 'identity' },
      signal,
      agent,
    });
    sent.on('error', reject);
    sent.on('response', (response) => {
      // Readers get the error, too; without a listener, an error with no reader would end the process.
      response.on('error', () => {});
      resolve(response);
    });
    sent.end();
  });
}

async function read(
  response: IncomingMessage,
  { server, maxBytes }: DownloadAsk,
  heard: () => void,
): Promise<Download> {
  const status = response.statusCode ?? 0;
  const { 'content-length': length, 'content-encoding': encoding = 'identity' } = response.headers;
  if (status < 200 || status > 299) {
    return { kind: 'refused', status, reason: `${server} answers with HTTP ${status}` };
  }
  if (encoding !== 'identity') {
    return { kind: 'gone', reason: `${server} sends it compressed, which was not asked for` };
  }
  const declared = Number(length ?? 0);
  if (declared > maxBytes) return { kind: 'too large' };
  // Into a single buffer: joining pieces at the end would take twice the memory.
  let bytes: Buffer = Buffer.allocUnsafeSlow(declared || FIRST_BYTES);
  let size = 0;
  heard();
  for await (const chunk of response as AsyncIterable<Buffer>) {
    heard();
    if (size + chunk.length > maxBytes) return { kind: 'too large' };
    if (size + chunk.length > bytes.length) bytes = grown(bytes, size + chunk.length);
    bytes.set(chunk, size);
    size += chunk.length;
  }
  return { kind: 'fetched', bytes: bytes.subarray(0, size) };
}

function grown(bytes: Buffer, least: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(Math.max(least, 2 * bytes.length));
  larger.set(bytes);
  return larger;
}
