/**
 * Asks servers for a page, from redirect to redirect. Each address is looked at anew: whoever answers for it has to be
 * public, or allowed by the operator, and the connection goes to the very addresses that were looked at.
 */
import type { LookupAddress } from 'node:dns';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP } from 'node:net';
import { hostOf, isLocalName, isPublicAddress, reachedBy } from '../../core/addresses.js';
import { cutAt } from '../../core/cut.js';
import { nameInPrompt } from '../../core/elements.js';
import { type AllowedHost, isAllowed } from './allowed-hosts.js';
import type { Network } from './network.js';
import * as refusals from './not-fetched.js';
import { NotFetched } from './not-fetched.js';

export interface PageAsk {
  allowed: readonly AllowedHost[];
  network: Network;
  /** Whether it stays on the host that was asked for: where words from outside may have chosen the address. */
  staysOnHost: boolean;
  signal: AbortSignal;
}

export interface Answered {
  /** Of the last server. */
  url: URL;
  response: IncomingMessage;
}

const MOST_REDIRECTS = 5;
const REDIRECTS: readonly unknown[] = [301, 302, 303, 307, 308];
/** Longer than those of any server that means well. */
const MOST_HEADER_BYTES = 65_536;
const MOST_ADDRESS_CHARS = 2_000;

const HEADERS = {
  'user-agent': 'coterie (web_fetch; single pages, asked for in a chat)',
  accept: 'text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.9, */*;q=0.1',
  'accept-encoding': 'gzip, br',
};

/** Throws NotFetched, and what the connection says while it is used. */
export async function requestPage(address: string, ask: PageAsk): Promise<Answered> {
  let url = pageAddress(address);
  if (url === null) throw new NotFetched(refusals.NO_ADDRESS);
  for (let redirects = 0; ; redirects++) {
    const response = await open(url, ask);
    const { location } = response.headers;
    if (!REDIRECTS.includes(response.statusCode) || location === undefined) return { url, response };
    response.destroy();
    if (redirects === MOST_REDIRECTS) throw new NotFetched(refusals.ENDLESS_REDIRECTS);
    // Node reads headers as Latin-1; a server that writes others means UTF-8.
    const next = pageAddress(Buffer.from(location, 'latin1').toString(), url.href);
    if (next === null) throw new NotFetched(refusals.REDIRECTED_AWAY);
    if (ask.staysOnHost && bareName(next) !== bareName(url)) {
      throw new NotFetched(refusals.otherHost(addressInPrompt(next)));
    }
    url = next;
  }
}

/** An address on the web, without its fragment; null for any other. */
export function pageAddress(address: string, base?: string): URL | null {
  if (!URL.canParse(address, base)) return null;
  const url = new URL(address, base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return null;
  url.hash = '';
  return url;
}

/** As the model is told of it: a server may lead on to one of any length. */
export function addressInPrompt({ href }: URL): string {
  return nameInPrompt(href.length <= MOST_ADDRESS_CHARS ? href : `${cutAt(href, MOST_ADDRESS_CHARS)}…`);
}

function bareName(url: URL): string {
  return hostOf(url).replace(/^www\./, '');
}

async function open(url: URL, ask: PageAsk): Promise<IncomingMessage> {
  if (url.username !== '' || url.password !== '') throw new NotFetched(refusals.WITH_LOGIN);
  const { network, signal } = ask;
  const host = hostOf(url);
  const secure = url.protocol === 'https:';
  const port = Number(url.port || (secure ? 443 : 80));
  const addresses = await checkedAddresses(host, port, ask);
  if (signal.aborted) throw signal.reason;
  const socket = await network.connect({ host, port, secure, addresses }, signal).catch((error) => {
    throw signal.aborted ? error : new NotFetched(refusals.sentenceFor(error));
  });
  return new Promise((resolve, reject) => {
    const sent = (secure ? httpsRequest : httpRequest)(url, {
      headers: HEADERS,
      // Without an agent nobody else knows it, and it would stand in the header of the host.
      defaultPort: secure ? 443 : 80,
      maxHeaderSize: MOST_HEADER_BYTES,
      signal,
      // No agent: it would keep connections for others, and may take its proxy from the environment.
      createConnection: () => socket,
    });
    sent.on('error', (error) => reject(signal.aborted ? error : new NotFetched(refusals.sentenceFor(error))));
    sent.on('response', (response) => {
      // Whoever reads gets the error, too; without a listener, one that nobody reads would end the process.
      response.on('error', () => {});
      resolve(response);
    });
    sent.end();
  });
}

/** Where a connection may go; throws if any address of the host is one that may not be reached. */
export async function checkedAddresses(
  host: string,
  port: number,
  { allowed, network, signal }: Omit<PageAsk, 'staysOnHost'>,
): Promise<LookupAddress[]> {
  const isNamed = isAllowed(allowed, host, port);
  if (!isNamed && isLocalName(host)) throw new NotFetched(refusals.NOT_PUBLIC);
  const family = isIP(host);
  const found =
    family === 0
      ? await untilAborted(network.addressesOf(host, isNamed, signal), signal)
      : [{ address: host, family }];
  const own = network.own();
  const mayReach = ({ address }: LookupAddress) =>
    isAllowed(allowed, address, port) || (isPublicAddress(address) && !own.includes(reachedBy(address)));
  // One private address among public ones is no accident: which of them is taken is decided elsewhere.
  if (found.length === 0 || !(isNamed || found.every(mayReach))) throw new NotFetched(refusals.NOT_PUBLIC);
  return found;
}

/** A lookup of the system cannot be ended; it is only no longer waited for. */
function untilAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(signal.reason);
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
