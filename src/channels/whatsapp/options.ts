/** `channels.whatsapp` of config.yaml. What every channel has (`access`) is added where the schemas are joined. */
import * as z from 'zod';
import { expected, rate, truth } from '../option-words.js';

export const whatsappOptions = z.object(
  {
    enabled: truth().default(false),
    web_socket_url: z
      .url({
        protocol: /^wss?$/,
        ...expected('the address of a WhatsApp server, like wss://web.whatsapp.com/ws/chat'),
      })
      .nullable()
      .default(null),
    messages_per_second: rate().default(5),
    per_chat_burst: rate().default(10),
  },
  expected('keys and values'),
);

/** The same in the words of the code. */
export interface WhatsAppOptions {
  enabled: boolean;
  /** null: WhatsApp's own. */
  webSocketUrl: string | null;
  messagesPerSecond: number;
  perChatBurst: number;
}
