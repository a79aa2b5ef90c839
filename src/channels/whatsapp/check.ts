/** For `doctor`: whether this gateway is linked, and with whose number. It does not log in: that would end the link of one that runs. */
import { meIn } from './account.js';
import { type ChannelState, readCredentials } from './credentials.js';
import { numberOf } from './jid.js';

export async function check(state: ChannelState): Promise<{ identity: string; warnings: string[] }> {
  const creds = await readCredentials(state);
  const me = creds && meIn(creds);
  if (!me) {
    const how =
      'start the gateway and scan the QR code that it shows (on the phone: Linked devices), or run "coterie pair whatsapp --phone NUMBER"';
    return { identity: 'not linked', warnings: [`not linked to a phone yet: ${how}`] };
  }
  const number = numberOf({ ...me, lid: null });
  return { identity: me.name === null ? number : `${number} (${me.name})`, warnings: [] };
}
