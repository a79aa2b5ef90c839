/** Slash commands as a bot puts them: what Discord takes, and how somebody's typing becomes options. */
import { isPayload } from './discord-form.js';
import { invalid, type Outcome } from './discord-outcome.js';
import type { Attachment, CommandOption, Invocation, Payload } from './discord-words.js';

const NAME = /^[-_'\p{L}\p{N}\p{sc=Deva}\p{sc=Thai}]{1,32}$/u;
const SUBCOMMAND = 1;
const TEXT = 3;
const ATTACHMENT = 11;

/** The refusal of a whole set, or null. */
export function refusalOfCommands(commands: unknown): Outcome | null {
  if (!Array.isArray(commands)) return invalid('', 'LIST_TYPE_CONVERT', 'Only iterables may be used.');
  if (commands.length > 100) return invalid('', 'BASE_TYPE_MAX_LENGTH', 'Must be 100 or fewer in length.');
  const names = commands.map((command) => (isPayload(command) ? command.name : ''));
  if (new Set(names).size < names.length) {
    return invalid('', 'APPLICATION_COMMANDS_DUPLICATE_NAME', 'Application command names must be unique');
  }
  for (const [index, command] of commands.entries()) {
    const fault = faultIn(isPayload(command) ? command : {});
    if (fault !== null) return invalid(`${index}.${fault.field}`, fault.code, fault.message);
  }
  return null;
}

interface FieldFault {
  field: string;
  code: string;
  message: string;
}

function faultIn({ name, description, options }: Payload, depth = 0): FieldFault | null {
  if (typeof name !== 'string' || !NAME.test(name) || name !== name.toLowerCase()) {
    return { field: 'name', code: 'APPLICATION_COMMAND_INVALID_NAME', message: 'Command name is invalid' };
  }
  if (typeof description !== 'string' || description === '' || [...description].length > 100) {
    const message = 'Must be between 1 and 100 in length.';
    return { field: 'description', code: 'BASE_TYPE_BAD_LENGTH', message };
  }
  if (options === undefined) return null;
  if (!Array.isArray(options) || options.length > 25 || depth > 2) {
    return { field: 'options', code: 'BASE_TYPE_MAX_LENGTH', message: 'Must be 25 or fewer in length.' };
  }
  const given = options.map((option) => (isPayload(option) ? option : {}));
  const wrong = (code: string, message: string) => ({ field: 'options', code, message });
  const groups = given.filter(({ type }) => type === SUBCOMMAND || type === 2).length;
  if (groups > 0 && groups < given.length) {
    return wrong('APPLICATION_COMMAND_OPTIONS_TYPE_INVALID', 'Sub-commands and options do not mix');
  }
  const required = given.map((option) => option.required === true);
  if (required.some((each, index) => each && required[index - 1] === false)) {
    return wrong('APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID', 'Required options must come first');
  }
  if (new Set(given.map((option) => option.name)).size < given.length) {
    return wrong('APPLICATION_COMMAND_OPTIONS_NAME_ALREADY_EXISTS', 'Option name already exists');
  }
  for (const [index, option] of given.entries()) {
    if (option.autocomplete === true && Array.isArray(option.choices) && option.choices.length > 0) {
      return wrong('APPLICATION_COMMAND_OPTIONS_CHOICES_AUTOCOMPLETE', 'Choices and autocomplete exclude');
    }
    const fault = faultIn(option, depth + 1);
    if (fault !== null) return { ...fault, field: `options.${index}.${fault.field}` };
  }
  return null;
}

/**
 * `/persona switch Luna` as the client of somebody who knows the commands sends it. Throws where there is no such
 * command, as that client would not send it.
 */
export function invocationOf(
  commands: Payload[],
  text: string,
  file?: Attachment,
): Pick<Invocation, 'name' | 'options' | 'files'> {
  const [, name = '', rest = ''] = /^\/(\S+)\s*([\s\S]*)$/.exec(text) ?? [];
  const command = commands.find((one) => one.name === name);
  if (command === undefined) throw new Error(`the command of "${text}" is not among those that were put`);
  const files = file === undefined ? {} : { files: [file] };
  return { name, options: optionsOf(command, rest.trim(), text, file), ...files };
}

function optionsOf({ options }: Payload, rest: string, whole: string, file?: Attachment): CommandOption[] {
  const known = Array.isArray(options) ? options.filter(isPayload) : [];
  if (known.some(({ type }) => type === SUBCOMMAND)) {
    const [, verb = '', value = ''] = /^(\S*)\s*([\s\S]*)$/.exec(rest) ?? [];
    const subcommand = known.find(({ name }) => name === verb);
    if (subcommand === undefined) throw new Error(`the command of "${whole}" has no "${verb}"`);
    return [{ name: verb, type: SUBCOMMAND, options: optionsOf(subcommand, value, whole, file) }];
  }
  const upload = known.find(({ type }) => type === ATTACHMENT);
  if (file !== undefined && upload === undefined) throw new Error(`the command of "${whole}" takes no file`);
  const uploads = file ? [{ name: String(upload?.name), type: ATTACHMENT, value: file.id }] : [];
  if (rest === '') return uploads;
  const taking = known.find(({ type }) => type === TEXT);
  if (taking === undefined) throw new Error(`the command of "${whole}" takes no text`);
  return [{ name: String(taking.name), type: TEXT, value: rest }, ...uploads];
}
