/**
 * Keys and tokens that are known by their own look: a prefix of the maker and a body that nobody writes by hand.
 * The lengths are the makers' or a little less, for a secret with its last characters cut is still one.
 */
import { linesOf, type Secret } from './found.js';

interface Shape {
  kind: string;
  pattern: RegExp;
}

/** Goes before a quantifier: letters and digits, and some of each, as no word has them. */
const RANDOM = '(?=[A-Za-z0-9]{0,40}\\d)(?=\\d{0,40}[A-Za-z])[A-Za-z0-9]';

/** At the beginning of a word only: `desk-…` holds no `sk-…`. */
function starts(kind: string, source: string): Shape {
  return { kind, pattern: new RegExp(`(?<![A-Za-z0-9])(?:${source})`, 'g') };
}

const SHAPES: Shape[] = [
  // Of model servers. OpenAI, Anthropic, OpenRouter, DeepSeek and others share `sk-`.
  starts('an API key', `sk-[\\w-]{0,40}?${RANDOM}{16,}[\\w-]*`),
  starts('an API key', `(?:gsk_|xai-|pplx-|tgp_v1_|nvapi-)${RANDOM}{24,}[\\w-]*`),
  starts('a Hugging Face token', `(?:hf|api_org)_[A-Za-z0-9]{30,}`),
  starts('a Replicate token', `r8_[A-Za-z0-9]{30,}`),

  // Of messengers.
  starts(
    'a Telegram bot token',
    `\\d{6,12}:(?:AA[\\w-]{20,}|(?=[\\w-]{0,36}\\d)(?=[\\w-]{0,36}[a-z])(?=[\\w-]{0,36}[A-Z])[\\w-]{33,37}(?![\\w-]))`,
  ),
  starts(
    'a Discord token',
    `[MNO](?=[\\w-]{0,27}\\d)[\\w-]{22,28}\\.[\\w-]{6,7}\\.[\\w-]{27,}|mfa\\.[\\w-]{40,}`,
  ),
  starts(
    'a Discord webhook address',
    `discord(?:app)?\\.com\\/api\\/(?:v\\d+\\/)?webhooks\\/\\d+\\/[\\w-]{30,}`,
  ),
  starts(
    'a Slack token',
    `xox[a-z]-(?:\\d-)?[\\w-]{20,}|xapp-\\d-[\\w-]{20,}|xoxe\\.xox[bp]-\\d-[\\w-]{20,}`,
  ),
  starts('a Slack webhook address', `hooks\\.slack\\.com\\/(?:services|workflows|triggers)\\/[\\w/+-]{20,}`),
  starts('a Teams webhook address', `webhook\\.office\\.com\\/webhookb2\\/[\\w@-]{36,}\\/[\\w/-]{20,}`),
  starts('a Facebook token', `EAA[A-Za-z0-9]{60,}`),

  // Of code and packages.
  starts('a GitHub token', `gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\\w{22,}`),
  starts(
    'a GitLab token',
    `gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|imt|oas|ffct)-(?:t\\d_|\\w{1,5}_)?[\\w.-]{20,}`,
  ),
  starts('an Atlassian token', `ATATT3[\\w=-]{40,}|ATCTT3[\\w=-]{40,}|ATBB[A-Za-z0-9]{28,}`),
  starts('an npm token', `npm_[A-Za-z0-9]{30,}`),
  starts('a PyPI token', `pypi-Ag[\\w-]{40,}`),
  starts('a RubyGems key', `rubygems_[a-f0-9]{40,}`),
  starts('a crates.io token', `cio(?=[A-Za-z]{0,31}\\d)[A-Za-z0-9]{32}(?![A-Za-z0-9])`),
  starts('a Docker token', `dckr_(?:pat|oat)_[\\w-]{24,}`),

  // Of clouds and services.
  starts('an AWS access key', `(?:AKIA|ABIA|ACCA|ASIA(?=[A-Z]{0,15}\\d))[A-Z0-9]{16}(?![A-Za-z0-9])`),
  starts('an AWS key', `ABSK[A-Za-z0-9+/]{60,}={0,2}`),
  starts('a Google API key', `AIza[\\w-]{30,}`),
  starts('a Google access token', `GOCSPX-[\\w-]{20,}|ya29\\.[\\w-]{20,}|1\\/\\/0[\\w-]{30,}`),
  starts(
    'an Azure key',
    `[A-Za-z0-9_~.]{3}\\dQ~[\\w~.-]{31,34}|(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,}={0,2}`,
  ),
  starts('a DigitalOcean token', `do[opr]_v1_[a-f0-9]{40,}`),
  starts('a Cloudflare key', `v1\\.0-[a-f0-9]{24}-[a-f0-9]{100,}`),
  starts('a Fly.io token', `fm[12]r?_[\\w+/=-]{60,}|fo1_[\\w-]{40,}`),
  starts('a Heroku key', `HRKU-[\\w-]{36,}`),
  starts('a Vercel token', `vc[piark]_[A-Za-z0-9]{20,}`),
  starts('a Supabase key', `sb[ps]_[a-f0-9]{40}|sb_secret_[\\w-]{20,}`),
  starts('a Stripe key', `(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/]{24,}`),
  starts('a Square token', `sq0(?:atp|csp)-[\\w-]{22,}|EAAA[\\w-]{56,}`),
  starts('a Shopify token', `shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}`),
  starts('a PayPal token', `access_token\\$(?:production|sandbox)\\$[a-z0-9]{16}\\$[a-f0-9]{32}`),
  starts('a SendGrid key', `SG\\.[\\w-]{16,}\\.[\\w-]{16,}`),
  starts('a Twilio key', `SK[a-f0-9]{32}(?![A-Za-z0-9])`),
  starts('a Mailgun key', `key-[a-f0-9]{32}(?![A-Za-z0-9])`),
  starts('a Mailchimp key', `[a-f0-9]{32}-us\\d{1,2}(?![A-Za-z0-9])`),
  starts('a Brevo key', `xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}`),
  starts('a Notion token', `ntn_[A-Za-z0-9]{40,}|secret_(?=[A-Za-z]*\\d)[A-Za-z0-9]{43}(?![A-Za-z0-9])`),
  starts('a Linear key', `lin_(?:api|oauth)_[A-Za-z0-9]{32,}`),
  starts('an Airtable token', `pat[A-Za-z0-9]{14}\\.[a-f0-9]{64}`),
  starts('a Figma token', `figd_[\\w-]{36,}`),
  starts('a Postman key', `PMAK-[a-f0-9]{24}-[a-f0-9]{34}`),
  starts('a Grafana token', `glsa_[A-Za-z0-9]{32}_[a-fA-F0-9]{8}|glc_[A-Za-z0-9+/]{32,}`),
  starts('a Sentry token', `sntr(?:yu_[a-f0-9]{64}|ys_[\\w+/=-]{60,})`),
  starts('a New Relic key', `NRAK-[A-Z0-9]{27}|NRJS-[a-f0-9]{19}`),
  starts('a Databricks token', `dapi[a-f0-9]{32}`),
  starts('a Tailscale key', `tskey-(?:[a-z]+-)?[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}`),
  starts('a Vault token', `hv[sbr]\\.[\\w-]{24,}`),
  starts('a Pulumi token', `pul-[a-f0-9]{40}`),
  starts('a Doppler token', `dp\\.(?:pt|st|ct|sa|scim|audit)\\.(?:[\\w-]+\\.)?[A-Za-z0-9]{40,}`),
  starts(
    'a 1Password key',
    `ops_eyJ[A-Za-z0-9+/]{60,}|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}`,
  ),
  starts('an age key', `AGE-SECRET-KEY-1[A-Z0-9]{50,}`),
  starts('a wallet key', `[xyz]prv[1-9A-HJ-NP-Za-km-z]{100,}`),

  // Of no maker.
  starts('a JSON web token', `eyJ[\\w-]{8,}\\.[\\w-]{8,}[\\w.-]*`),
  starts(
    'a login in an address',
    `[a-z][a-z0-9+.-]{1,30}:\\/\\/[^\\s/:@?#"'\`<>|]{0,200}:[^\\s/?#"'\`<>|]{1,200}@[^\\s/@:]`,
  ),
  starts(
    'an authenticator secret',
    `otpauth(?:-migration)?:\\/\\/[^\\s]{0,300}?(?:secret|data)=[\\w%=-]{16,}`,
  ),
];

/** All of them at once, where only whether there is any is asked. */
const ANY = new RegExp(SHAPES.map(({ pattern }) => pattern.source).join('|'));

/** How many lines a wrapped token is looked for over, and how long it is at least. */
const MOST_LINES = 4;
const SHORTEST = 20;

export function shapedSecrets(text: string): Secret[] {
  return [...find(text), ...wrappedSecrets(text)];
}

function find(text: string): Secret[] {
  return SHAPES.flatMap(({ kind, pattern }) =>
    [...text.matchAll(pattern)]
      .filter((match) => !isMasked(match[0]))
      .map((match) => ({ kind, at: match.index, value: match[0] })),
  );
}

/** Tokens that go over the end of a line: the last word of it, and what the next lines begin with. */
function wrappedSecrets(text: string): Secret[] {
  const lines = linesOf(text).map(({ text: line, at }) => ({ at, text: bare(line) }));
  return lines.flatMap((line, row) => {
    const first = line.text.slice(line.text.lastIndexOf(' ') + 1);
    // What the line holds whole is found already.
    if (first === '' || ANY.test(first)) return [];
    let token = first;
    for (const { text: next } of lines.slice(row + 1, row + MOST_LINES)) {
      const word = next.slice(0, next.search(/\s|$/));
      if (word === '') break;
      token += word;
      const found = token.length < SHORTEST || !ANY.test(token) ? [] : find(token);
      const secret = found.find(({ at }) => at < first.length);
      if (secret !== undefined) return [{ ...secret, at: line.at }];
      if (word !== next) break;
    }
    return [];
  });
}

/** Without what Markdown sets before a line, and the backslash that breaks one. */
function bare(line: string): string {
  return line
    .replace(/^[\s>]+/, '')
    .trimEnd()
    .replace(/\\$/, '');
}

/** Stars or dots, or the name of a variable, where the secret would be. */
function isMasked(match: string): boolean {
  return /[*•]{3}|\.{3}|:(?:\$\{?\w+\}?|\{+[^}]*\}+|%\w+%|\[[^\]]*\]|x{3,}|_+)@/i.test(match);
}
