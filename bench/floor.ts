/**
 * The smallest possible bot, to compare with: grammY and openai, no memory, no store, no order, no retries; what
 * it has taken in is lost when it ends. Chats are served side by side. Run by plain node, as the gateway is.
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

// Not awaited, or the chats would wait for each other.
bot.on('message:text', (ctx) => {
  answer(ctx, ctx.message.text).catch((error) => console.error(error));
});
bot.catch((error) => console.error(error));

await bot.start();
