/** What Discord means by closing the connection of the gateway, for operators. */
import { failureOf } from './failure.js';

const MEANING: Record<number, string> = {
  4004: 'Discord refuses the token (is channels.discord.token the one that the developer portal gave?)',
  4008: 'Discord’s gateway says that we send too much',
  4009: 'the session timed out',
  4010: 'Discord’s gateway refuses our shard',
  4011: 'the bot is in more servers than one connection may serve',
  4012: 'Discord’s gateway does not know our version any more',
  4013: 'Discord’s gateway does not know our intents',
  4014: 'Discord refuses the intent Message Content: tick it at discord.com/developers/applications, on the page Bot, under Privileged Gateway Intents',
};

export function closedWords(code: number | null): string {
  const told = code === null ? '' : ` (close code ${code})`;
  return `${(code !== null && MEANING[code]) || 'the connection to Discord’s gateway was closed'}${told}`;
}

/** `lastCode` says with what the connection was closed, if there was one: the library's words say less. */
export function loginWords(error: unknown, lastCode: number | null, token: string): string {
  if (lastCode !== null && MEANING[lastCode] !== undefined) return closedWords(lastCode);
  if (error instanceof Error && 'code' in error && error.code === 'TokenInvalid') return closedWords(4004);
  return failureOf(error, token).reason;
}
