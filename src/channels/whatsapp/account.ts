/** The account that a connection is logged in with, as its credentials tell it. */
import type { AuthenticationCreds } from '@whiskeysockets/baileys';
import { isLinked } from './credentials.js';
import { personOf, userOf } from './jid.js';
import type { Me } from './scene.js';

/** What the library calls somebody whose name it does not know. */
const NO_NAME = '~';

/** null until this gateway is linked. */
export function meIn(creds: AuthenticationCreds): Me | null {
  const { phone, lid } = personOf(creds.me?.id, creds.me?.lid);
  if (!isLinked(creds) || phone === null) return null;
  const name = creds.me?.name?.trim();
  return { phone, lid, name: name && name !== NO_NAME ? name : null };
}

/** The name of the account in the store: its number. */
export function accountOf({ phone }: Me): string {
  return userOf(phone);
}
