/** WhatsApp's entry in the list of channels, and the QR code that links it. */
import type { Log } from '../../core/log.js';
import type { ChannelDescriptor } from '../kit/descriptor.js';
import { whatsappIds } from './ids.js';
import { whatsappOptions } from './options.js';

export const whatsapp: ChannelDescriptor<'whatsapp', typeof whatsappOptions> = {
  name: 'whatsapp',
  label: 'WhatsApp',
  options: whatsappOptions,
  secrets: [],
  ids: whatsappIds,
  streaming: ['edit', 'off'],
  // The number is usually a person's own, so unknown senders are let in only if the section says so.
  access: { direct: 'closed', groups: 'listed' },
  async create(host) {
    const { createWhatsApp } = await import('./channel.js');
    const onQr = (text: string) => {
      host.linking(text);
      void showQr(text, host.show, host.log);
    };
    return createWhatsApp({ ...host, onQr });
  },
};

async function showQr(text: string, show: (drawn: string) => void, log: Log): Promise<void> {
  log.info({ channel: 'whatsapp' }, `whatsapp qr: ${text}`);
  try {
    const { default: qrcode } = await import('qrcode');
    // A terminal gets black on white; logs, usually on a dark ground, light blocks without control codes.
    const drawn =
      process.stderr.isTTY === true
        ? qrcode.toString(text, { type: 'terminal', small: true })
        : qrcode.toString(text, { type: 'utf8', color: { dark: '#ffffff', light: '#000000' } });
    show(await drawn);
  } catch (error) {
    log.warn({ err: error }, 'drawing the QR code failed');
  }
}
