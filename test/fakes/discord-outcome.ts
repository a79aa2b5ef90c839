/** What a call of the API comes to, before it is written to the connection; and Discord's refusals. */
import type { Payload, SentMessage } from './discord-words.js';

/** Without a body it is a 204. */
export interface Outcome {
  status: number;
  body?: unknown;
  /** The message of ours that it answers for. */
  taken?: SentMessage;
}

export const NOTHING: Outcome = { status: 204 };

export function ok(body: unknown): Outcome {
  return { status: 200, body };
}

export function refused(status: number, code: number, message: string): Outcome {
  return { status, body: { message, code } };
}

/** Discord says of a form which field is wrong. */
export function invalid(field: string, code: string, message: string): Outcome {
  let errors: Payload = { _errors: [{ code, message }] };
  for (const name of field.split('.').reverse()) errors = { [name]: errors };
  return { status: 400, body: { message: 'Invalid Form Body', code: 50035, errors } };
}

export const UNAUTHORIZED = refused(401, 0, '401: Unauthorized');
export const NOT_FOUND = refused(404, 0, '404: Not Found');
export const UNKNOWN_CHANNEL = refused(404, 10003, 'Unknown Channel');
export const UNKNOWN_GUILD = refused(404, 10004, 'Unknown Guild');
export const UNKNOWN_MEMBER = refused(404, 10007, 'Unknown Member');
export const UNKNOWN_MESSAGE = refused(404, 10008, 'Unknown Message');
export const UNKNOWN_USER = refused(404, 10013, 'Unknown User');
export const UNKNOWN_EMOJI = refused(400, 10014, 'Unknown Emoji');
export const UNKNOWN_WEBHOOK = refused(404, 10015, 'Unknown Webhook');
export const UNKNOWN_INTERACTION = refused(404, 10062, 'Unknown interaction');
export const TOO_LARGE = refused(413, 40005, 'Request entity too large');
export const ALREADY_ANSWERED = refused(400, 40060, 'Interaction has already been acknowledged.');
export const MISSING_ACCESS = refused(403, 50001, 'Missing Access');
export const NOT_THE_AUTHOR = refused(403, 50005, 'Cannot edit a message authored by another user');
export const EMPTY_MESSAGE = refused(400, 50006, 'Cannot send an empty message');
export const NO_TEXT_CHANNEL = refused(400, 50008, 'Cannot send messages in a non-text channel');
export const MISSING_PERMISSIONS = refused(403, 50013, 'Missing Permissions');
export const TOO_MANY_WEBHOOKS = refused(400, 30007, 'Maximum number of webhooks reached (15)');
export const CANNOT_DO_IN_DM = refused(400, 50003, 'Cannot execute action on a DM channel');
export const WRONG_KIND_OF_CHANNEL = refused(400, 50024, 'Cannot execute action on this channel type');
export const INVALID_WEBHOOK_TOKEN = refused(401, 50027, 'Invalid Webhook Token');
export const TOKEN_EXPIRED = refused(401, 50027, 'Invalid Webhook Token');
export const TOO_MANY_REACTIONS = refused(400, 30010, 'Maximum number of reactions reached (20)');
export const NO_VOICE_HERE = refused(403, 50173, 'You cannot send voice messages in this channel');
export const VOICE_IS_NOT_EDITED = refused(400, 50162, 'Voice messages cannot be edited');
export const VOICE_WITH_MORE = refused(400, 50159, 'Voice messages do not support additional content.');
export const VOICE_NEEDS_ONE_FILE = refused(
  400,
  50160,
  'Voice messages must have a single audio attachment.',
);
export const VOICE_NEEDS_METADATA = refused(400, 50161, 'Voice messages must have supporting metadata.');
export const THREAD_ARCHIVED = refused(400, 50083, 'Thread is archived');
export const NO_HISTORY_TO_REPLY_TO = refused(
  403,
  160002,
  'Cannot reply without permission to read message history',
);
