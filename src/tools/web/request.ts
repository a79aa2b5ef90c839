/** Requests pages. At each redirect the server must be public or allowed; only the checked addresses are connected. */
import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, isIPv6, type LookupFunction, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { orAborted } from '../../core/clock.js';
import { cutAt } from '../../core/cut.js';
import { codeOf } from '../../core/file-access.js';
import {
  hostOf,
  isLocalName,
  isPublicAddress,
  type LookupFor,
  type Outward,
  reachedBy,
} from '../../core/network.js';
import { nameInPrompt } from '../../core/origin.js';

interface AllowedHost {
  /** In the form of `hostOf`. */
  host: string;
  /** null: any. */
  port: number | null;
}

export function allowedHosts(listed: readonly string[]): AllowedHost[] {
  return listed.flatMap((each) => allowedHost(each) ?? []);
}

/** `nas.lan`, `nas.lan:8080`, `192.168.1.5`, `fd00::5`, `[fd00::5]:8080`, `http://nas.lan`; else null. */
export function allowedHost(listed: string): AllowedHost | null {
  const given = listed.trim().replace(/^https?:\/\/([^/]*)\/?$/i, '$1');
  const entry = isIPv6(given) ? `[${given}]` : given;
  const [, host = '', port] = /^(\[[^\]]*\]|[^:/?#@\s]+)(?::(\d{1,5}))?$/.exec(entry) ?? [];
  const address = port === undefined ? `http://${host}` : `http://${host}:${port}`;
  if (host === '' || !URL.canParse(address)) return null;
  return { host: hostOf(new URL(address)), port: port === undefined ? null : Number(port) };
}

/** `host` is a name, or the address that a name led to. */
function isAllowed(allowed: readonly AllowedHost[], host: string, port: number): boolean {
  const same = isIPv6(host) ? hostOf(new URL(`http://[${host}]`)) : host;
  return allowed.some((each) => each.host === same && (each.port === null || each.port === port));
}

/** Why a page was not fetched: a full sentence for the model that reveals nothing of the local network. */
export class NotFetched extends Error {}

export const NO_ADDRESS =
  'That is no address of a page: it has to begin with http:// or https:// and name a server. Nothing was fetched.';
export const WITH_LOGIN = 'Addresses with a user name or a password in them are not fetched.';
/** One sentence for missing and for forbidden servers, so that it does not reveal which names are in use. */
export const NOT_PUBLIC = 'No public server was found at that address, so nothing was fetched.';
export const REDIRECTED_AWAY = 'The address leads on to one that is no page of the web. Nothing was fetched.';
export const ENDLESS_REDIRECTS =
  'The address leads on and on to others, more than five times. Nothing was fetched.';
export const UNREACHABLE = 'The server could not be reached. Nothing was fetched.';
export const BAD_CERTIFICATE =
  'The server could not prove who it is (its certificate is not valid), so nothing was fetched.';
export const NO_HTTP = 'What the server answered is not HTTP, or far too much of it. Nothing was fetched.';
export const BROKEN_OFF = 'The connection ended before the page was there. Nothing was fetched.';
export const NOT_UNPACKED =
  'The server sent the page compressed in a way that cannot be read. Nothing was fetched.';
export const STOPPED = 'Stopped: nothing was fetched.';

export function tooSlow(seconds: number): string {
  return `The server did not send the page within ${seconds} ${seconds === 1 ? 'second' : 'seconds'}. Nothing was fetched.`;
}

function sentenceFor(error: unknown): string {
  const code = codeOf(error);
  if (code.startsWith('HPE_')) return NO_HTTP;
  if (/CERT|SIGNATURE|TLS|SSL|EPROTO/.test(code)) return BAD_CERTIFICATE;
  return UNREACHABLE;
}

export interface Network {
  /** All addresses of a name, possibly none. `asSystem`: including this machine's hosts file. */
  addressesOf(name: string, asSystem: boolean, signal: AbortSignal): Promise<LookupAddress[]>;
  /** This machine's addresses: a public one of them leads behind its firewall. */
  own(): string[];
  /** Connects only to one of these addresses; behind a proxy, to the name that had them. */
  connect(to: PageDestination, signal: AbortSignal): Promise<Socket>;
}

export interface PageDestination {
  /** A name, or the address itself; for the certificate. */
  host: string;
  port: number;
  secure: boolean;
  addresses: readonly LookupAddress[];
}

export function systemNetwork(outward: Outward): Network {
  return {
    addressesOf,
    own: () =>
      Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []),
    connect: ({ addresses, ...to }, signal) => outward.connect({ ...to, lookup: onlyTo(addresses) }, signal),
  };
}

const DNS_TIMEOUT_MS = 4_000;
const DNS_TRIES = 2;

/** Avoids the system's lookup: silent name servers would block the threads that read files. */
async function addressesOf(name: string, asSystem: boolean, signal: AbortSignal): Promise<LookupAddress[]> {
  if (asSystem) return lookup(name, { all: true }).catch(() => []);
  const resolver = new Resolver({ timeout: DNS_TIMEOUT_MS, tries: DNS_TRIES });
  const cancel = () => resolver.cancel();
  signal.addEventListener('abort', cancel, { once: true });
  // A name without addresses of one kind is an error of that kind.
  const [v4, v6] = await Promise.all([
    resolver.resolve4(name).catch(() => []),
    resolver.resolve6(name).catch(() => []),
  ]);
  signal.removeEventListener('abort', cancel);
  return [...v4.map((address) => ({ address, family: 4 })), ...v6.map((address) => ({ address, family: 6 }))];
}

function onlyTo(addresses: readonly LookupAddress[]): LookupFunction {
  const [first] = addresses;
  return (_name, { all }, done) => {
    if (all) done(null, [...addresses]);
    else done(null, first?.address ?? '', first?.family);
  };
}

/** Where a request may go, and until when. */
interface WebReach {
  allowed: readonly AllowedHost[];
  network: Network;
  signal: AbortSignal;
}

interface PageAsk extends WebReach {
  /** Whether redirects must stay on the first host: words from outside may have chosen the address. */
  staysOnHost: boolean;
}

export interface Answered {
  /** After redirects. */
  url: URL;
  response: IncomingMessage;
}

const MOST_REDIRECTS = 5;
const REDIRECTS: readonly unknown[] = [301, 302, 303, 307, 308];
/** More than any well-meaning server sends. */
const MOST_HEADER_BYTES = 65_536;
const MOST_ADDRESS_CHARS = 2_000;

const HEADERS = {
  'user-agent': 'coterie (web_fetch; single pages, asked for in a chat)',
  accept: 'text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.9, */*;q=0.1',
  'accept-encoding': 'gzip, br',
};

/** Throws NotFetched, or the connection's error. */
export async function requestPage(address: string, ask: PageAsk): Promise<Answered> {
  let url = pageAddress(address);
  if (url === null) throw new NotFetched(NO_ADDRESS);
  for (let redirects = 0; ; redirects++) {
    const response = await open(url, ask);
    const { location } = response.headers;
    if (!REDIRECTS.includes(response.statusCode) || location === undefined) return { url, response };
    response.destroy();
    if (redirects === MOST_REDIRECTS) throw new NotFetched(ENDLESS_REDIRECTS);
    // Node reads headers as Latin-1; a server that writes others means UTF-8.
    const next = pageAddress(Buffer.from(location, 'latin1').toString(), url.href);
    if (next === null) throw new NotFetched(REDIRECTED_AWAY);
    if (ask.staysOnHost && bareName(next) !== bareName(url)) {
      throw new NotFetched(
        `The address leads on to another server, which is not followed just now. Where it is needed, fetch it by its own address: ${addressInPrompt(next)}`,
      );
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

/** As shown to the model: a redirect may have any length. */
export function addressInPrompt({ href }: URL): string {
  return nameInPrompt(href.length <= MOST_ADDRESS_CHARS ? href : `${cutAt(href, MOST_ADDRESS_CHARS)}…`);
}

function bareName(url: URL): string {
  return hostOf(url).replace(/^www\./, '');
}

async function open(url: URL, ask: PageAsk): Promise<IncomingMessage> {
  if (url.username !== '' || url.password !== '') throw new NotFetched(WITH_LOGIN);
  const { network, signal } = ask;
  const host = hostOf(url);
  const secure = url.protocol === 'https:';
  const port = Number(url.port || (secure ? 443 : 80));
  const addresses = await checkedAddresses(host, port, ask);
  if (signal.aborted) throw signal.reason;
  const socket = await network.connect({ host, port, secure, addresses }, signal).catch((error) => {
    throw signal.aborted ? error : new NotFetched(sentenceFor(error));
  });
  return new Promise((resolve, reject) => {
    const sent = (secure ? httpsRequest : httpRequest)(url, {
      headers: HEADERS,
      // Without an agent the port would otherwise appear in the Host header.
      defaultPort: secure ? 443 : 80,
      maxHeaderSize: MOST_HEADER_BYTES,
      signal,
      // No agent: it would keep connections for others, and may take its proxy from the environment.
      createConnection: () => socket,
    });
    sent.on('error', (error) => reject(signal.aborted ? error : new NotFetched(sentenceFor(error))));
    sent.on('response', (response) => {
      // The reader gets the error, too; an unread response with an error would otherwise end the process.
      response.on('error', () => {});
      resolve(response);
    });
    sent.end();
  });
}

/** The allowed destination; throws if any address of the host is forbidden. */
async function checkedAddresses(
  host: string,
  port: number,
  { allowed, network, signal }: WebReach,
): Promise<LookupAddress[]> {
  const isNamed = isAllowed(allowed, host, port);
  if (!isNamed && isLocalName(host)) throw new NotFetched(NOT_PUBLIC);
  const family = isIP(host);
  // A system lookup cannot be aborted; this only stops waiting for it.
  const looked = family === 0 ? orAborted(network.addressesOf(host, isNamed, signal), signal) : null;
  const found = looked === null ? [{ address: host, family }] : ((await looked) ?? []);
  signal.throwIfAborted();
  const own = network.own();
  const mayReach = ({ address }: LookupAddress) =>
    isAllowed(allowed, address, port) || (isPublicAddress(address) && !own.includes(reachedBy(address)));
  // One private address among public ones is no accident, and we do not choose which of them is used.
  if (found.length === 0 || !(isNamed || found.every(mayReach))) throw new NotFetched(NOT_PUBLIC);
  return found;
}

/** `allowHosts`: `tools.web.allow_hosts`. The result throws NotFetched for a forbidden server. */
export function createReach(allowHosts: readonly string[], network: Network): LookupFor {
  const { signal } = new AbortController();
  const reach = { allowed: allowedHosts(allowHosts), network, signal };
  return async ({ host, port }) =>
    onlyTo(await checkedAddresses(host.replace(/(?<!\.)\.+$/, ''), port, reach));
}
