/** The account that a gateway is linked to, as its credentials tell it. */
import type { AuthenticationCreds } from '@whiskeysockets/baileys';
import type { ChannelState } from '../../core/channel-host.js';
import { isLinked, readCredentials } from './credentials.js';
import { numberOf, personOf, userOf } from './jid.js';
import type { Me } from './origin.js';
import { troublesIn } from './trouble.js';

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

/** For `doctor`. It does not log in: that would end the connection of a gateway that runs. */
export async function check(state: ChannelState): Promise<{ identity: string; warnings: string[] }> {
  const creds = await readCredentials(state);
  const me = creds && meIn(creds);
  const known = await troublesIn(state);
  if (!me) {
    const how =
      'start the gateway and scan the QR code that it shows (on the phone: Linked devices), or run "coterie pair whatsapp --phone NUMBER"';
    return { identity: 'not linked', warnings: [`not linked to a phone yet: ${how}`, ...known] };
  }
  const number = numberOf({ ...me, lid: null });
  return { identity: me.name === null ? number : `${number} (${me.name})`, warnings: known };
}
