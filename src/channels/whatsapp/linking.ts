/**
 * Linking, as far as the library leaves it to us: a code counts only when WhatsApp has accepted it, a QR code is drawn
 * anew when WhatsApp retires what stands in it, and why a phone was not linked is said in words.
 */
import { randomBytes } from 'node:crypto';
import {
  type AuthenticationCreds,
  type BinaryNode,
  getBinaryNodeChild,
  type WASocket,
} from '@whiskeysockets/baileys';

const PASSKEY =
  'the account has to prove a passkey, which a gateway cannot: no code will link it, so take another number';
const DEVICES =
  'remove one of its linked devices (four at most), update WhatsApp on the phone, and try again after some hours';

/** What may be wrong when codes were shown and nothing came of them. */
export const UNLINKED = {
  unscanned: `not linked: no phone was linked while the last QR codes were shown. If one was scanned, and the phone asked for a passkey or said "Continue on WhatsApp Web", ${PASSKEY}. If it said "Couldn't link device", ${DEVICES}, or link with a code: coterie pair whatsapp --phone NUMBER`,
  untyped: 'nobody typed the code in time',
  takenBack: `not linked: WhatsApp took the link back at once (401). On the phone, ${DEVICES}`,
  refused: `not linked: WhatsApp refuses to link this gateway just now (401). On the phone, ${DEVICES}`,
  passkey: `WhatsApp did not complete the link: ${PASSKEY}`,
  stalled: `the phone took the code, but WhatsApp did not complete the link. If the phone asked for a passkey or said "Continue on WhatsApp Web", ${PASSKEY}; otherwise ${DEVICES}, or scan the QR code that the gateway shows when it is started`,
} as const;

/** Why there is no code; null for what a second try may mend. */
function refusalOf(code: number): string {
  const scan = 'scan the QR code that the gateway shows when it is started';
  return code === 429
    ? `WhatsApp was asked for too many codes for this number (429): wait some hours, or ${scan}`
    : `WhatsApp gives no code for this number (${code}): see that it is the account's whole number, with the country code; if it is, ${scan}`;
}

/** Why a phone cannot be linked, for good. */
export class Unlinkable extends Error {}

/**
 * Asks for a code to be typed on the phone. The library hands out its code before WhatsApp has answered; here it counts
 * only after that (WhiskeySockets/Baileys#2737). Throws `Unlinkable` when WhatsApp refuses.
 */
export async function askForCode(socket: WASocket, digits: string): Promise<string> {
  const answered = new Promise<void>((resolve, reject) => {
    socket.ws.on('CB:iq,type:result,link_code_companion_reg', () => resolve());
    socket.ws.on('CB:iq,type:error', (answer: BinaryNode) => {
      const code = Number(getBinaryNodeChild(answer, 'error')?.attrs.code);
      reject(new Unlinkable(refusalOf(code || 400)));
    });
  });
  const [code] = await Promise.all([socket.requestPairingCode(digits), answered]);
  return code;
}

/**
 * Calls `taken` when the code was typed on the phone, and `refused` when what comes then cannot be read: the account has
 * to prove a passkey (WhiskeySockets/Baileys#2694).
 */
export function onCodeTyped(
  socket: WASocket,
  { taken, refused }: { taken(): void; refused(why: Unlinkable): void },
) {
  const needed = [
    'link_code_pairing_ref',
    'primary_identity_pub',
    'link_code_pairing_wrapped_primary_ephemeral_pub',
  ];
  socket.ws.on('CB:notification,type:link_code_companion_reg', (notification: BinaryNode) => {
    const hello = getBinaryNodeChild(notification, 'link_code_companion_reg');
    if (needed.every((part) => getBinaryNodeChild(hello, part) !== undefined)) taken();
    else refused(new Unlinkable(UNLINKED.passkey));
  });
}

/**
 * WhatsApp may retire the secret that stands in the QR codes. Browsers then make a new one and draw the code on the
 * screen anew; the library does not (WhiskeySockets/Baileys#2765).
 */
export function withCurrentSecret(socket: WASocket, creds: AuthenticationCreds, show: (qr: string) => void) {
  let shown: string | null = null;
  function draw(qr: string): void {
    shown = qr;
    const [address = '', values = ''] = qr.split('#');
    const [ref, noiseKey, identityKey, , ...rest] = values.split(',');
    show(`${address}#${[ref, noiseKey, identityKey, creds.advSecretKey, ...rest].join(',')}`);
  }
  socket.ws.on('CB:notification,type:companion_reg_refresh', () => {
    if (creds.account !== undefined) return;
    socket.ev.emit('creds.update', { advSecretKey: randomBytes(32).toString('base64') });
    if (shown !== null) draw(shown);
  });
  return draw;
}
