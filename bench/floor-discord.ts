/** The smallest possible Discord bot, for comparison: discord.js and openai only, like `floor.ts`. */
import { Client, Events, GatewayIntentBits, type Message, Partials } from 'discord.js';
import OpenAI from 'openai';

const { BOT_API: api, BOT_TOKEN: token = '', BOT_MODEL: baseURL } = process.env;
if (!api || !baseURL) throw new Error('BOT_API and BOT_MODEL say where the servers are');

const model = new OpenAI({ baseURL, apiKey: 'none' });
const client = new Client({
  intents: [
    GatewayIntentBits.Guilds,
    GatewayIntentBits.GuildMessages,
    GatewayIntentBits.DirectMessages,
    GatewayIntentBits.MessageContent,
  ],
  partials: [Partials.Channel],
  rest: { api },
});

async function answer(message: Message): Promise<void> {
  const completion = await model.chat.completions.create({
    model: 'scripted',
    messages: [
      { role: 'system', content: 'You are a helpful assistant in a chat. Answer briefly.' },
      { role: 'user', content: message.content },
    ],
  });
  if (message.channel.isSendable()) await message.channel.send(completion.choices[0]?.message.content ?? '');
}

client.on(Events.MessageCreate, (message) => {
  if (!message.author.bot) answer(message).catch((error) => console.error(error));
});
client.on(Events.Error, (error) => console.error(error));

await client.login(token);
