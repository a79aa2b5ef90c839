/** WhatsApp, for the list of channels; and the QR code that links it. */
import type { ChannelHost } from '../../core/channel-host.js';
import { describeChannel } from '../kit/descriptor.js';
import { whatsappIds } from './ids.js';
import { whatsappOptions } from './options.js';

export const whatsapp = describeChannel({
  name: 'whatsapp',
  label: 'WhatsApp',
  options: whatsappOptions,
  secrets: [],
  ids: whatsappIds,
  // It gets whole messages.
  streaming: ['off', 'edit'],
  // The number is mostly somebody's own: strangers are let in only where its own section says so.
  access: { direct: 'closed', groups: 'listed' },
  async create(host) {
    const { createWhatsApp } = await import('./channel.js');
    return createWhatsApp({ ...host, onQr: (text) => void showQr(text, host) });
  },
});

async function showQr(
  text: string,
  { show, log }: Pick<ChannelHost<unknown>, 'show' | 'log'>,
): Promise<void> {
  log.info({ channel: 'whatsapp' }, `whatsapp qr: ${text}`);
  try {
    const { drawQr } = await import('./qr.js');
    show(await drawQr(text, process.stderr.isTTY === true));
  } catch (error) {
    log.warn({ err: error }, 'the QR code could not be drawn');
  }
}
