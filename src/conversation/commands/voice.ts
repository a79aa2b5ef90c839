/** `/voice`: whether replies in this chat are spoken, too. */
import type { Command, CommandAnswer, CommandCall, CommandServices } from './command.js';

const CHOICES = ['on', 'off'] as const;

export const voice: Command = {
  name: 'voice',
  aliases: [],
  description: 'Say whether I speak my replies, too; on or off',
  verbs: [
    { name: 'on', description: 'My replies come as voice notes, too' },
    { name: 'off', description: 'My replies are text alone' },
  ],
  ofChat: true,
  changes: (argument) => argument.trim() !== '',
  audited: (argument) => CHOICES.find((each) => each === argument.trim().toLowerCase()) ?? '',
  async run({ command }, services) {
    const argument = command.argument.trim().toLowerCase();
    const impossible = whyNot(command, services);
    if (argument === '') return { text: impossible ?? howItIs(command, services) };
    const chosen = CHOICES.find((each) => each === argument);
    if (chosen === undefined) return { text: 'Write /voice on or /voice off; /voice alone says how it is.' };
    if (chosen === 'on' && impossible !== null) return { text: impossible };
    const text = chosen === 'on' ? ON : OFF;
    return { text, effects: [{ kind: 'voice', chatId: command.chat.id, voice: chosen }] };
  },
};

type Asked = CommandCall['command'];

const ON = 'From now on my replies here come as voice notes, too. Long ones stay text alone.';
const OFF = 'From now on my replies here are text alone.';

function whyNot({ chat }: Asked, { speech, channels }: CommandServices): CommandAnswer['text'] | null {
  if (!channels.get(chat.channel)?.voiceNotes) return 'There are no voice notes here.';
  if (speech === null) return 'I have no voice yet: whoever runs me can give me one.';
  return null;
}

function howItIs({ chat }: Asked, { speech }: CommandServices): string {
  if (chat.voice === 'on')
    return 'Voice is on: my replies here come as voice notes, too. /voice off ends it.';
  if (chat.voice === undefined && speech?.whenSpokenTo)
    return 'I speak when I am spoken to: my reply to a voice note comes as one, too. /voice on: always; /voice off: never.';
  return 'Voice is off: my replies here are text alone. With /voice on they come as voice notes, too.';
}
