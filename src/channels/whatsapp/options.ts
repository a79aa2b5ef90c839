/** The keys of `channels.whatsapp` in config.yaml, and what a WhatsApp channel is created with. */
import * as z from 'zod';
import type { ChannelHost, ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { Outward } from '../../core/network.js';
import { address, type Camel, expected, rate, truth } from '../kit/descriptor.js';

const version = expected('a version of WhatsApp Web, like 2.3000.1043857760');

export const whatsappOptions = z.object(
  {
    enabled: truth().default(false),
    // null: WhatsApp's own.
    web_socket_url: address('the address of a WhatsApp server, like wss://web.whatsapp.com/ws/chat', /^wss?$/)
      .nullable()
      .default(null),
    // null: the library's; once WhatsApp has retired that, the newest, which is looked up.
    version: z
      .string(version)
      .trim()
      .regex(/^\d{1,9}\.\d{1,9}\.\d{1,12}$/, version)
      .nullable()
      .default(null),
    messages_per_second: rate().default(5),
    per_chat_burst: rate().default(10),
  },
  expected('keys and values'),
);

export type WhatsAppOptions = Camel<z.output<typeof whatsappOptions>>;

/** For a connection to WhatsApp. */
export interface LinkHost {
  options: WhatsAppOptions;
  state: ChannelState;
  outward: Outward;
  clock: Clock;
  log: Log;
}

export interface WhatsAppHost
  extends LinkHost,
    Pick<ChannelHost<WhatsAppOptions>, 'cursor' | 'sentPart' | 'noteLink'> {
  /** Shows a code for the phone to scan. */
  onQr(text: string): void;
}
