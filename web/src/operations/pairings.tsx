/** People and groups that ask to be let in, and those that were. */
import { useId, useState } from 'preact/hooks';
import type { PairingsNow } from '../../../src/board/protocol-operations.ts';
import { ask } from '../api.ts';
import { useTexts } from '../app.ts';
import { Dialog } from '../kit/dialog.tsx';
import { filled } from '../texts/texts.ts';
import { Box, useDeed, When } from './parts.tsx';
import { visible } from './symbols.ts';

const decide = (what: 'approve' | 'remove', id: string) =>
  ask(`api/board/pairings/${what}`, { method: 'POST', json: { id } });

export function Pairings({ pairings, again }: { pairings: PairingsNow; again: () => void }) {
  const { operations } = useTexts();
  const { run, isBusy, said } = useDeed(again);
  const [leaving, setLeaving] = useState<string | null>(null);
  const { waiting, letIn } = pairings;
  const line =
    waiting.length === 0 ? operations.nobodyWaits : filled(operations.waits, { n: waiting.length });
  return (
    <Box title={operations.pairings} level={waiting.length > 0 ? 'warn' : 'good'} line={line}>
      {said}
      {waiting.length > 0 && (
        <ul class="list">
          {waiting.map((each) => (
            <Waiting
              key={each.id}
              waiting={each}
              isBusy={isBusy}
              approve={(name) => run(() => decide('approve', each.id), filled(operations.approved, { name }))}
              remove={(name) => run(() => decide('remove', each.id), filled(operations.refused, { name }))}
            />
          ))}
        </ul>
      )}
      {letIn.length > 0 && (
        <details>
          <summary class="small">{filled(operations.letIn, { n: letIn.length })}</summary>
          <ul class="list">
            {letIn.map((each) => (
              <LetIn key={each.id} one={each} remove={() => setLeaving(each.id)} />
            ))}
          </ul>
        </details>
      )}
      {leaving !== null && (
        <Dialog title={operations.removeOne} close={() => setLeaving(null)}>
          <p>{filled(operations.removeWhat, { name: leaving })}</p>
          <div class="buttons">
            <button type="button" onClick={() => setLeaving(null)}>
              {operations.keep}
            </button>
            <button
              type="button"
              class="danger"
              onClick={() => {
                setLeaving(null);
                void run(() => decide('remove', leaving), filled(operations.removed, { name: leaving }));
              }}
            >
              {operations.remove}
            </button>
          </div>
        </Dialog>
      )}
    </Box>
  );
}

function Waiting({
  waiting: { code, kind, id, name: given, until },
  isBusy,
  approve,
  remove,
}: {
  waiting: PairingsNow['waiting'][number];
  isBusy: boolean;
  approve: (name: string) => void;
  remove: (name: string) => void;
}) {
  const { operations } = useTexts();
  const about = useId();
  const name = visible(given, true);
  return (
    <li class="row item">
      <p id={about} class="grow words">
        {code !== '' && <code>{code}</code>} <b>{name}</b>{' '}
        <span class="soft small">
          {kind === 'group' ? operations.group : ''} {id}, {operations.until} <When at={until} />
        </span>
      </p>
      <div class="row">
        <button type="button" aria-describedby={about} disabled={isBusy} onClick={() => remove(name)}>
          {operations.remove}
        </button>
        <button
          type="button"
          class="primary"
          aria-describedby={about}
          disabled={isBusy}
          onClick={() => approve(name)}
        >
          {operations.approve}
        </button>
      </div>
    </li>
  );
}

function LetIn({ one, remove }: { one: PairingsNow['letIn'][number]; remove: () => void }) {
  const { operations } = useTexts();
  const about = useId();
  const { id, kind, name, isOwner, since, listed } = one;
  return (
    <li class="row item">
      <p id={about} class="grow words">
        {name !== null && <b>{visible(name, true)} </b>}
        <span class="soft small">
          {kind === 'group' ? operations.group : ''} {id}
          {since !== null && (
            <>
              , {operations.since} <When at={since} />
            </>
          )}
        </span>{' '}
        {isOwner && <span class="tag good">{operations.owner}</span>}
      </p>
      {isOwner ? (
        <span class="soft small">{listed ? 'access.owners' : 'coterie pair'}</span>
      ) : (
        <button type="button" class="quiet" aria-describedby={about} onClick={remove}>
          {operations.remove}
        </button>
      )}
    </li>
  );
}
