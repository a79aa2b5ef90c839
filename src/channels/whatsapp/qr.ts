/** The QR code that links the gateway, drawn with characters, two of its rows a line. */
import qrcode from 'qrcode';

/**
 * On a terminal black on white. Elsewhere (the log of a container, a journal) without control characters, and light
 * where there are blocks: almost everybody reads logs on a dark ground.
 */
export function drawQr(text: string, onTerminal: boolean): Promise<string> {
  return onTerminal
    ? qrcode.toString(text, { type: 'terminal', small: true })
    : qrcode.toString(text, { type: 'utf8', color: { dark: '#ffffff', light: '#000000' } });
}
