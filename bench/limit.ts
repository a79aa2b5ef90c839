/**
 * The lower limit, for comparison: a durable bot on `fetch` and better-sqlite3 alone. Receiving, claiming, finishing
 * and sending are a transaction each; a chat is answered in order, with its history. Any error ends the process; the
 * next start resumes from the database.
 */
import Database from 'better-sqlite3';

interface Row {
  id: number;
  role: string;
  content: string;
}

const { BOT_TELEGRAM: telegram, BOT_TOKEN: token, BOT_MODEL: model } = process.env;
if (!telegram || !model) throw new Error('BOT_TELEGRAM and BOT_MODEL say where the servers are');
const SYSTEM =
  'You are a helpful assistant in a chat: answer briefly, and say so when you do not know. '.repeat(46);

const db = new Database('limit.db');
db.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
  CREATE TABLE IF NOT EXISTS message (id INTEGER PRIMARY KEY, chat INTEGER NOT NULL, update_id INTEGER UNIQUE,
    role TEXT NOT NULL, content TEXT NOT NULL, state TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS history ON message (chat, id) WHERE state = 'done';
  CREATE INDEX IF NOT EXISTS inbox ON message (chat, id) WHERE state <> 'done';
  CREATE TABLE IF NOT EXISTS outbox (id INTEGER PRIMARY KEY, chat INTEGER NOT NULL, text TEXT NOT NULL, sent_as INTEGER);
  CREATE INDEX IF NOT EXISTS unsent ON outbox (chat, id) WHERE sent_as IS NULL;
  UPDATE message SET state = 'waiting' WHERE state = 'taken';`);
const add = db.prepare(`INSERT INTO message (chat, update_id, role, content, state) VALUES (?, ?, ?, ?, ?)
  ON CONFLICT DO NOTHING`);
const waiting = db.prepare<[number], Row>(
  `SELECT * FROM message WHERE chat = ? AND state = 'waiting' ORDER BY id`,
);
const mark = db.prepare(`UPDATE message SET state = ? WHERE id = ?`);
const history = db.prepare<[number], Row>(
  `SELECT * FROM message WHERE chat = ? AND state = 'done' ORDER BY id DESC LIMIT 40`,
);
const post = db.prepare('INSERT INTO outbox (chat, text) VALUES (?, ?)');
const unsent = db.prepare<[number], { id: number; text: string }>(
  `SELECT id, text FROM outbox WHERE chat = ? AND sent_as IS NULL ORDER BY id`,
);
const sent = db.prepare('UPDATE outbox SET sent_as = ? WHERE id = ?');
const unfinished = db
  .prepare(
    `SELECT chat FROM message WHERE state <> 'done' UNION SELECT chat FROM outbox WHERE sent_as IS NULL`,
  )
  .pluck();

const receive = db.transaction(
  (updates: { update_id: number; message: { chat: { id: number }; text: string } }[]) => {
    for (const { update_id, message } of updates)
      add.run(message.chat.id, update_id, 'user', message.text, 'waiting');
  },
);
const take = db.transaction((chat: number) => {
  const batch = waiting.all(chat);
  for (const { id } of batch) mark.run('taken', id);
  return { batch, before: batch.length > 0 ? history.all(chat).reverse() : [] };
});
const finish = db.transaction((chat: number, batch: Row[], reply: string) => {
  for (const { id } of batch) mark.run('done', id);
  add.run(chat, null, 'assistant', reply, 'done');
  post.run(chat, reply);
});

// biome-ignore lint/suspicious/noExplicitAny: what two servers answer, as loosely as a small bot takes it
async function call(url: string, body: object): Promise<any> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response.json();
}
const bot = async (method: string, body: object) =>
  (await call(`${telegram}/bot${token}/${method}`, body)).result;

const busy = new Set<number>();
async function serve(chat: number): Promise<void> {
  if (busy.has(chat)) return;
  busy.add(chat);
  for (;;) {
    for (const { id, text } of unsent.all(chat))
      sent.run((await bot('sendMessage', { chat_id: chat, text })).message_id, id);
    const { batch, before } = take.immediate(chat);
    if (batch.length === 0) break;
    const now = { role: 'user', content: batch.map(({ content }) => content).join('\n') };
    const past = before.map(({ role, content }) => ({ role, content }));
    const messages = [{ role: 'system', content: SYSTEM }, ...past, now];
    const { choices } = await call(`${model}/chat/completions`, { model: 'scripted', messages });
    finish.immediate(chat, batch, choices[0].message.content);
  }
  busy.delete(chat);
}

for (const chat of unfinished.all()) void serve(chat as number);
for (let offset = 0; ; ) {
  const updates = await bot('getUpdates', { offset, timeout: 30 });
  // On disk before the next request acknowledges the updates to Telegram.
  db.exec('PRAGMA synchronous = FULL');
  receive.immediate(updates);
  db.exec('PRAGMA synchronous = NORMAL');
  for (const { update_id, message } of updates) {
    offset = update_id + 1;
    void serve(message.chat.id);
  }
}
