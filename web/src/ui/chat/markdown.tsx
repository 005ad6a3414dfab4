// SPDX-License-Identifier: Apache-2.0
/**
 * markdown.tsx - what a model says, drawn: paragraphs, lists, tables, code with a button to copy it.
 *
 * The text is untrusted. marked takes it apart, and its tokens become elements of the page one by
 * one: no HTML of a model is ever parsed, it is shown as the text that it is. Links lead out only by
 * http, https and mailto; pictures, which would be fetched, become links.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { marked, type Token, type Tokens } from 'marked';
import { IconButton } from '../parts/button';
import { copyText } from './copy';
import type { Coloured } from './highlight';

/** A text while it grows has its last block taken apart anew each time; the others are the same. */
export function Markdown({ text }: { text: string }) {
  return <>{blocks(marked.lexer(text, { gfm: true, breaks: true }))}</>;
}

function blocks(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, i) => <Block key={i} token={token} />);
}

const HEADS = ['h3', 'h4', 'h5', 'h6'] as const;

function Block({ token }: { token: Token }) {
  switch (token.type) {
    case 'space':
    case 'def':
      return null;
    case 'heading': {
      const { depth, tokens } = token as Tokens.Heading;
      // The page has the first two levels.
      const Head = HEADS[Math.min(depth - 1, HEADS.length - 1)] ?? 'h6';
      return <Head>{spans(tokens)}</Head>;
    }
    case 'paragraph':
      return <p>{spans((token as Tokens.Paragraph).tokens)}</p>;
    case 'code':
      return <Code code={token as Tokens.Code} />;
    case 'blockquote':
      return <blockquote>{blocks((token as Tokens.Blockquote).tokens)}</blockquote>;
    case 'hr':
      return <hr />;
    case 'list':
      return <List list={token as Tokens.List} />;
    case 'table':
      return <Table table={token as Tokens.Table} />;
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return <>{tokens ? spans(tokens) : text}</>;
    }
    default:
      return <p>{token.raw}</p>;
  }
}

function List({ list }: { list: Tokens.List }) {
  const items = list.items.map((item, i) => (
    <li key={i}>
      {item.task && <input type="checkbox" checked={item.checked ?? false} disabled />}
      {blocks(item.tokens)}
    </li>
  ));
  return list.ordered ? <ol start={Number(list.start) || 1}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table }: { table: Tokens.Table }) {
  const cells = (row: readonly Tokens.TableCell[], Cell: 'th' | 'td') =>
    row.map((cell, i) => (
      <Cell key={i} style={cell.align ? { textAlign: cell.align } : undefined}>
        {spans(cell.tokens)}
      </Cell>
    ));
  return (
    <div class="md-table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{cells(table.header, 'th')}</tr>
        </thead>
        <tbody>
          {table.rows.map((row, i) => (
            <tr key={i}>{cells(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Code({ code }: { code: Tokens.Code }) {
  const language = code.lang?.trim().split(/\s/, 1)[0] ?? '';
  const [coloured, setColoured] = useState<Coloured[] | null>(null);
  useEffect(() => {
    let late = false;
    setColoured(null);
    if (language === '') return;
    // Its script is loaded with the first code of a language that it knows.
    import('./highlight').then(
      ({ highlight }) => {
        if (!late) setColoured(highlight(code.text, language));
      },
      () => {},
    );
    return () => {
      late = true;
    };
  }, [code.text, language]);
  return (
    <div class="md-code">
      <div class="md-code-head">
        <span>{language || 'text'}</span>
        <IconButton icon="copy" label="Copy the code" onClick={() => void copyText(code.text)} />
      </div>
      <pre tabIndex={0}>
        <code>
          {coloured
            ? coloured.map((part, i) => (
                <span key={i} class={part.kind === '' ? undefined : `code-${part.kind}`}>
                  {part.text}
                </span>
              ))
            : code.text}
        </code>
      </pre>
    </div>
  );
}

function spans(tokens: readonly Token[]): ComponentChildren {
  return tokens.map((token, i) => <Span key={i} token={token} />);
}

function Span({ token }: { token: Token }) {
  switch (token.type) {
    case 'strong':
      return <strong>{spans((token as Tokens.Strong).tokens)}</strong>;
    case 'em':
      return <em>{spans((token as Tokens.Em).tokens)}</em>;
    case 'del':
      return <del>{spans((token as Tokens.Del).tokens)}</del>;
    case 'codespan':
      return <code>{(token as Tokens.Codespan).text}</code>;
    case 'br':
      return <br />;
    case 'link': {
      const { href, tokens } = token as Tokens.Link;
      return <Out href={href}>{spans(tokens)}</Out>;
    }
    case 'image': {
      const { href, text } = token as Tokens.Image;
      return <Out href={href}>{text || href}</Out>;
    }
    case 'escape':
      return <>{(token as Tokens.Escape).text}</>;
    case 'text': {
      const { tokens, text } = token as Tokens.Text;
      return <>{tokens ? spans(tokens) : text}</>;
    }
    default:
      return <>{token.raw}</>;
  }
}

/** A link that opens beside the page; anything but an address of the web stays text. */
function Out({ href, children }: { href: string; children: ComponentChildren }) {
  if (!/^(https?:\/\/|mailto:)/i.test(href)) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {children}
    </a>
  );
}
