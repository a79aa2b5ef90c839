/** Checks that every message was answered exactly once and in order. The fake model echoes its input. */

export interface Answered {
  messages: number;
  /** Messages without an answer. */
  lost: number;
  /** Surplus answers. */
  doubled: number;
  /** Chats with answers in another order than their messages. */
  outOfOrder: number;
}

/** A text that can be recognised in its answer. */
export function textOf(person: number, n: number): string {
  return `This is message p${person}n${n} and it says nothing else.`;
}

export function checkAnswers(
  said: ReadonlyMap<number, string[]>,
  sent: readonly { chatId: number; text: string }[],
): Answered {
  const total: Answered = { messages: 0, lost: 0, doubled: 0, outOfOrder: 0 };
  for (const [person, texts] of said) {
    const wanted = texts.flatMap(marksIn);
    const replies = sent.filter((reply) => reply.chatId === person);
    const got = replies.flatMap((reply) => marksIn(reply.text));
    const once = [...new Set(got)];
    total.messages += wanted.length;
    total.lost += wanted.filter((mark) => !once.includes(mark)).length;
    total.doubled += got.length - once.length;
    const inOrder = wanted.filter((mark) => once.includes(mark));
    if (inOrder.some((mark, index) => mark !== once[index])) total.outOfOrder += 1;
  }
  return total;
}

function marksIn(text: string): string[] {
  return text.match(/p\d+n\d+/g) ?? [];
}
