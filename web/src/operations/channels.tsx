/** Channels with what is wrong and what to do about it. */
import type { ChannelItem } from '../../../src/board/protocol-operations.ts';
import { useTexts } from '../app.ts';
import { addressOf } from '../place.ts';
import { filled } from '../texts/texts.ts';
import { Box, When } from './parts.tsx';
import { visible } from './symbols.ts';
import { ORDER, worstOf } from './worst.ts';

export function Channels({ channels }: { channels: ChannelItem[] }) {
  const { operations } = useTexts();
  const sorted = [...channels].sort((a, b) => ORDER[a.level] - ORDER[b.level]);
  return (
    <Box
      title={operations.channels}
      level={worstOf(channels.map(({ level }) => level))}
      line={channels.length === 0 && operations.noChannels}
    >
      {channels.length === 0 ? (
        <p>
          <a href={addressOf('setup')}>{operations.connectOne}</a>
        </p>
      ) : (
        <ul class="list">
          {sorted.map((channel) => (
            <Channel key={channel.name} channel={channel} />
          ))}
        </ul>
      )}
    </Box>
  );
}

function Channel({ channel }: { channel: ChannelItem }) {
  const { operations } = useTexts();
  const { label, level, state, heldBy, since, lastError, advice } = channel;
  const tag = { good: 'good', warn: 'warn', bad: 'bad' }[level];
  return (
    <li class="stack tight">
      <p class="row">
        <b>{label}</b>
        <span class={`tag ${tag}`}>{filled(operations[state], { gateway: heldBy ?? '' })}</span>
        {heldBy === null && (
          <span class="soft small">
            {operations.since} <When at={since} />
          </span>
        )}
      </p>
      {advice !== null && (
        <p>
          {filled(operations.advice[advice], { channel: label })}{' '}
          {SETS_UP.includes(advice) && <a href={addressOf('setup')}>{operations.openSetup}</a>}
        </p>
      )}
      {lastError !== null && (
        <p class="soft small words">
          {operations.lastError}: {visible(lastError, true)}
        </p>
      )}
    </li>
  );
}

/** Done on the page itself. */
const SETS_UP: readonly ChannelItem['advice'][] = ['token', 'link', 'linkAgain'];
