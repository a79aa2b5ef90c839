/**
 * The smallest possible WhatsApp bot, for comparison: Baileys and openai, like `floor.ts`. It keeps its credentials in
 * memory only, and is linked by the same log line as the gateway.
 */
import {
  type AuthenticationState,
  BufferJSON,
  initAuthCreds,
  makeWASocket,
  type SignalDataTypeMap,
} from '@whiskeysockets/baileys';
import OpenAI from 'openai';
import { pino } from 'pino';

const { BOT_SOCKET: waWebSocketUrl, BOT_MODEL: baseURL } = process.env;
if (!waWebSocketUrl || !baseURL) throw new Error('BOT_SOCKET and BOT_MODEL say where the servers are');
const address: string = waWebSocketUrl;

const model = new OpenAI({ baseURL, apiKey: 'none' });
const keys = new Map<string, string>();
const auth: AuthenticationState = {
  creds: initAuthCreds(),
  keys: {
    get: <Kind extends keyof SignalDataTypeMap>(type: Kind, ids: string[]) => {
      const found: Record<string, SignalDataTypeMap[Kind]> = {};
      for (const id of ids) {
        const value = keys.get(`${type}-${id}`);
        if (value !== undefined) found[id] = JSON.parse(value, BufferJSON.reviver);
      }
      return found;
    },
    set(data) {
      for (const [type, values] of Object.entries(data)) {
        for (const [id, value] of Object.entries(values ?? {})) {
          if (value === null) keys.delete(`${type}-${id}`);
          else keys.set(`${type}-${id}`, JSON.stringify(value, BufferJSON.replacer));
        }
      }
    },
  },
};

// libsignal prints whole sessions to the console.
console.info = () => {};
console.warn = () => {};

function connect(): void {
  const socket = makeWASocket({
    auth,
    waWebSocketUrl: address,
    logger: pino({ level: 'silent' }),
    shouldSyncHistoryMessage: () => false,
  });
  socket.ev.on('creds.update', (changed) => void Object.assign(auth.creds, changed));
  socket.ev.on('connection.update', ({ qr, connection }) => {
    if (qr) process.stderr.write(`whatsapp qr: ${qr}\n`);
    if (connection === 'close') connect();
  });
  socket.ev.on('messages.upsert', ({ messages }) => {
    for (const { key, message } of messages) {
      const text = message?.conversation ?? message?.extendedTextMessage?.text;
      if (!text || key.fromMe || !key.remoteJid) continue;
      answer(socket, key.remoteJid, text).catch((error) => console.error(error));
    }
  });
}

async function answer(socket: ReturnType<typeof makeWASocket>, jid: string, content: string): Promise<void> {
  const completion = await model.chat.completions.create({
    model: 'scripted',
    messages: [
      { role: 'system', content: 'You are a helpful assistant in a chat. Answer briefly.' },
      { role: 'user', content },
    ],
  });
  await socket.sendMessage(jid, { text: completion.choices[0]?.message.content ?? '' });
}

connect();
