/** One article of a conversation: who, when, the words, and what belongs to them. */
import type { ComponentChild } from 'preact';
import type { LogRow, Remembered, RowApproval, RowAuthor, RowCall } from '../../../src/board/protocol.ts';
import { useTexts } from '../app.ts';
import { addressOf } from '../place.ts';
import { filled } from '../texts/texts.ts';
import { Face } from './face.tsx';
import { Files } from './files.tsx';
import { Markdown, PlainText } from './markdown.tsx';
import { languageOfPage, timeInWords } from './words.ts';

/** Things that can be done at a row; without them it is only read. */
export interface RowActions {
  decide?: (approval: RowApproval, decision: 'approve' | 'deny') => void;
  choose?: (value: string) => void;
  undo?: (turn: string) => void;
  tryAgain?: (row: LogRow) => void;
  /** A line below it, for further controls. */
  below?: (row: LogRow) => ComponentChild;
}

export function Row({
  row,
  isFirst,
  actions = {},
}: {
  row: LogRow;
  /** Its author is shown. */
  isFirst: boolean;
  actions?: RowActions;
}) {
  const { kit } = useTexts();
  const { author, at, text, state, files, calls, approvals, remembered, choices } = row;
  const name = nameOf(author, kit.you, kit.gateway);
  const time = timeInWords(at, languageOfPage());
  const isOwn = author.kind === 'person' && author.own;
  return (
    <article
      class={`message ${author.kind} ${isOwn ? 'own' : ''} ${isFirst ? 'first' : ''}`}
      aria-label={`${name}, ${time}`}
      aria-busy={state === 'writing'}
    >
      {isFirst && (
        <header>
          {author.kind === 'persona' && <Face name={name} avatar={author.avatar} />}
          <b>{name}</b> <time dateTime={new Date(at).toISOString()}>{time}</time>
        </header>
      )}
      <Around row={row} />
      {calls?.map((call) => (
        <Call key={call.id} call={call} />
      ))}
      {text === '' && state === 'writing' && <Dots />}
      {text !== '' &&
        (author.kind === 'person' || row.plain ? (
          <PlainText text={text} />
        ) : (
          <Markdown text={text} isGrowing={state === 'writing'} level={1} />
        ))}
      {files && files.length > 0 && <Files files={files} />}
      {approvals?.map((approval) => (
        <Approval key={approval.id} approval={approval} name={name} decide={actions.decide} />
      ))}
      {choices && choices.length > 0 && actions.choose && (
        <p class="row choices">
          {choices.map(({ label, value }) => (
            <button key={value} type="button" onClick={() => actions.choose?.(value)}>
              {label}
            </button>
          ))}
        </p>
      )}
      {remembered && remembered.length > 0 && (
        <RememberedLines
          remembered={remembered}
          undo={row.turn === undefined ? undefined : actions.undo}
          turn={row.turn ?? ''}
        />
      )}
      {(state === 'failed' || state === 'unsent') && (
        <div class="fault row">
          <p>{row.error ?? (state === 'failed' ? kit.failedTurn : kit.unsent)}</p>
          {state === 'failed' && actions.tryAgain && (
            <button type="button" onClick={() => actions.tryAgain?.(row)}>
              {kit.tryAgain}
            </button>
          )}
        </div>
      )}
      {actions.below?.(row)}
    </article>
  );
}

function nameOf(author: RowAuthor, you: string, gateway: string): string {
  if (author.kind === 'person') return author.own ? you : author.name;
  return author.name || gateway;
}

/** Before the words: to what they are an answer, and from whom they are. */
function Around({ row: { replyTo, forwardedFrom } }: { row: LogRow }) {
  const { kit } = useTexts();
  return (
    <>
      {forwardedFrom !== undefined && (
        <p class="tiny soft">{filled(kit.forwarded, { name: forwardedFrom })}</p>
      )}
      {replyTo && (
        <blockquote class="reply-to">
          <b>{replyTo.author}</b> {replyTo.text}
        </blockquote>
      )}
    </>
  );
}

export function Call({ call: { tool, arguments: given, result, failed } }: { call: RowCall }) {
  const { kit } = useTexts();
  return (
    <details class={`call ${failed ? 'bad' : ''}`} aria-label={tool}>
      <summary>
        <span class="tool">{tool}</span> <span class="soft">{shortOf(given)}</span>
        {failed && <span class="tag bad">{kit.callFailed}</span>}
        {result === null && <span class="tag">{kit.callRuns}</span>}
      </summary>
      <p class="tiny soft">{kit.arguments}</p>
      <pre class="wraps">{given}</pre>
      {result !== null && (
        <>
          <p class="tiny soft">{kit.result}</p>
          <pre class="wraps">
            <PlainText text={result} />
          </pre>
        </>
      )}
    </details>
  );
}

/** The values of arguments, as far as they fit in a line. */
function shortOf(given: string): string {
  try {
    const values = Object.values(JSON.parse(given) as object);
    return values
      .filter((value) => typeof value !== 'object')
      .join(' · ')
      .slice(0, 120);
  } catch {
    return given.slice(0, 120);
  }
}

function Approval({
  approval,
  name,
  decide,
}: {
  approval: RowApproval;
  name: string;
  decide: RowActions['decide'];
}) {
  const { kit } = useTexts();
  const { tool, arguments: given, why, until, decision } = approval;
  return (
    <fieldset class="approval" aria-label={kit.approval}>
      <p>
        {filled(kit.wants, { name })} <b class="tool">{tool}</b>
      </p>
      {why !== '' && <p class="small soft">{why}</p>}
      {given !== '' && <pre class="wraps">{given}</pre>}
      {decision === null ? (
        <div class="row">
          <p class="small soft grow">{filled(kit.until, { time: timeInWords(until, languageOfPage()) })}</p>
          {decide && (
            <div class="pair">
              <button type="button" onClick={() => decide(approval, 'deny')}>
                {kit.deny}
              </button>
              <button type="button" onClick={() => decide(approval, 'approve')}>
                {kit.approve}
              </button>
            </div>
          )}
        </div>
      ) : (
        <p class="small soft">{kit[decision]}</p>
      )}
    </fieldset>
  );
}

/** Lines that a turn wrote into memory, each leading to its place. */
function RememberedLines({
  remembered,
  undo,
  turn,
}: {
  remembered: readonly Remembered[];
  undo: RowActions['undo'];
  turn: string;
}) {
  const { kit } = useTexts();
  return (
    <div class="remembered">
      {remembered.map(({ version, chatId, personaId, file, tier, line }) => (
        <p key={version}>
          <span class="soft">{kit.remembered}</span> <q>{line.replace(/^\s*[-*+] /, '')}</q> ·{' '}
          <a
            href={addressOf('memory', [chatId, personaId], {
              file,
              line,
              ...(tier !== null && { tier: String(tier) }),
            })}
          >
            {kit.show}
          </a>
        </p>
      ))}
      {undo && (
        <button type="button" class="quiet undo" onClick={() => undo(turn)}>
          {kit.undo}
        </button>
      )}
    </div>
  );
}

function Dots() {
  return (
    <p class="dots" aria-hidden="true">
      <i />
      <i />
      <i />
    </p>
  );
}
