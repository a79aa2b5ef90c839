/** Why a page was not fetched: whole sentences for the model, none of which tells anything of the network around us. */
export class NotFetched extends Error {}

export const NO_ADDRESS =
  'That is no address of a page: it has to begin with http:// or https:// and name a server. Nothing was fetched.';
export const WITH_LOGIN = 'Addresses with a user name or a password in them are not fetched.';
/** One sentence for what is not there and for what may not be reached, so that nobody learns which names are in use. */
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

/** `address`: fit to stand in a sentence. */
export function otherHost(address: string): string {
  return `The address leads on to another server, which is not followed just now. Where it is needed, fetch it by its own address: ${address}`;
}

/** What a connection that failed says of it. */
export function sentenceFor(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  if (code.startsWith('HPE_')) return NO_HTTP;
  if (/CERT|SIGNATURE|TLS|SSL|EPROTO/.test(code)) return BAD_CERTIFICATE;
  return UNREACHABLE;
}
