/**
 * The smallest possible bot, for comparison: grammY and openai, without memory, store, order or retries; a crash loses
 * what it has received. It serves chats concurrently. Run by plain node, like the gateway.
 */
import { Bot, type Context } from 'grammy';
import OpenAI from 'openai';

const { BOT_TELEGRAM: apiRoot, BOT_TOKEN: token = '', BOT_MODEL: baseURL } = process.env;
if (!apiRoot || !baseURL) throw new Error('BOT_TELEGRAM and BOT_MODEL say where the servers are');

const bot = new Bot(token, { client: { apiRoot } });
const model = new OpenAI({ baseURL, apiKey: 'none' });

async function answer(ctx: Context, text: string): Promise<void> {
  const completion = await model.chat.completions.create({
    model: 'scripted',
    messages: [
      { role: 'system', content: 'You are a helpful assistant in a chat. Answer briefly.' },
      { role: 'user', content: text },
    ],
  });
  await ctx.reply(completion.choices[0]?.message.content ?? '');
}

// Not awaited, so that chats do not wait for each other.
bot.on('message:text', (ctx) => {
  answer(ctx, ctx.message.text).catch((error) => console.error(error));
});
bot.catch((error) => console.error(error));

await bot.start();
