/** Asks WhatsApp for a code that is typed on the phone. */
import { type BinaryNode, getBinaryNodeChild, type WASocket } from '@whiskeysockets/baileys';
import { Fault } from '../../core/errors.js';

/** Throws Fault `configuration`. */
export function digitsOf(phone: string): string {
  const digits = phone.replace(/\D/g, '').replace(/^00/, '');
  if (/^\d{6,15}$/.test(digits)) return digits;
  throw new Fault('configuration', 'expected a phone number with its country code, like +49 170 1234567');
}

export function notLinked(reason: string): Fault {
  return new Fault('internal', `WhatsApp was not linked: ${reason}`);
}

function refusalOf(code: number): string {
  const scan = 'scan the QR code that the gateway shows when it is started';
  return code === 429
    ? `WhatsApp was asked for too many codes for this number (429): wait some hours, or ${scan}`
    : `WhatsApp gives no code for this number (${code}): see that it is the account's whole number, with the country code; if it is, ${scan}`;
}

/** Requests a code, valid once WhatsApp has answered (WhiskeySockets/Baileys#2737). */
export async function askForCode(socket: WASocket, digits: string): Promise<string> {
  const answered = new Promise<void>((resolve, reject) => {
    socket.ws.on('CB:iq,type:result,link_code_companion_reg', () => resolve());
    socket.ws.on('CB:iq,type:error', (answer: BinaryNode) => {
      const code = Number(getBinaryNodeChild(answer, 'error')?.attrs.code);
      reject(notLinked(refusalOf(code || 400)));
    });
  });
  const [code] = await Promise.all([socket.requestPairingCode(digits), answered]);
  return `${code.slice(0, 4)}-${code.slice(4)}`;
}
