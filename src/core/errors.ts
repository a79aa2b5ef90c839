/** Errors by code. Messages are for operators. Neither they nor the sentences for the chat contain secrets. */

/** Shown in the chat. Empty: the general one. */
const SENTENCES = {
  model_unreachable: 'I could not reach my language model just now. Please try again in a moment.',
  model_silent: 'My language model took too long to answer. Please try again in a moment.',
  model_refused: 'My language model refused this request, so I have no answer. Please tell whoever runs me.',
  model_empty: 'My language model gave no answer this time. Please try again.',
  model_endless: 'My language model would not stop writing, so I have no answer. Please try again.',
  context_too_long: 'This conversation has grown too long for my language model. /reset starts a new one.',
  task_too_long: 'This task has grown too long for my language model. A smaller one may do.',
  limit_chat: 'Today’s limit for this chat is reached; I answer again tomorrow.',
  limit_persona: 'Today’s limit for this persona is reached; it answers again tomorrow.',
  limit_person: 'Your limit for today is reached; I answer you again tomorrow.',
  limit_day: 'Today’s limit for all chats is reached; I answer again tomorrow.',
  lease_lost: 'Something went wrong on my side, and I could not answer. Please send it again.',
  unauthorised: 'That is not allowed here.',
  memory_unavailable: 'I cannot read or write my memory files just now.',
  embedding_unavailable: 'I could not search by meaning just now.',
  audit_unavailable:
    'I could not write down in my audit log that this is done, so I did not do it. Please tell whoever runs me.',
  store_newer: '',
  store_unavailable: 'Something went wrong on my side, and I could not answer. Please send it again.',
  configuration: '',
  already_running: '',
  internal: 'Something went wrong on my side, and I could not answer. Please send it again.',
} as const;

export type FaultCode = keyof typeof SENTENCES;

/** All errors that the gateway raises. `message` is for the operator, `sentence` for the chat. */
export class Fault extends Error {
  override readonly name = 'Fault';

  constructor(
    readonly code: FaultCode,
    message: string,
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }

  get sentence(): string {
    return SENTENCES[this.code] || SENTENCES.internal;
  }
}

/** The sentence for a chat; reveals nothing of unexpected errors. */
export function sentenceOf(error: unknown): string {
  return error instanceof Fault ? error.sentence : SENTENCES.internal;
}

/** One line for a log or report: the message and those of its causes, without stacks. */
export function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const message = error.message || error.name;
  const cause = error.cause === undefined ? '' : describe(error.cause);
  return cause === '' || message.includes(cause) ? message : `${message}: ${cause}`;
}
