/** Markdown as elements: no raw HTML, links show their host, an image is fetched when its link is opened; long texts
 * are folded. */
import MarkdownIt, { type Token } from "markdown-it";
import { Fragment, type ReactNode, useMemo } from "react";
import { form as messages } from "@/locales/en/form";
import { textOf } from "@/locales/text";
import { plainText } from "@/models/values";
import { Folded } from "./Folded";
import "./values.css";

const t = textOf(messages);
const parser = new MarkdownIt("commonmark", { html: false, linkify: false }).enable(["table", "strikethrough"]);

const TAGS = new Set([
  "p", "ul", "ol", "li", "em", "strong", "s", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "h1", "h2", "h3", "h4", "h5", "h6",
]);

export function Markdown({ text }: { text: string }) {
  return <Folded text={text}>{(shown) => <WholeMarkdown text={shown} />}</Folded>;
}

/** Without folding: for a text that is a page of its own. */
export function WholeMarkdown({ text }: { text: string }) {
  const shown = useMemo(() => build(parser.parse(plainText(text), {})), [text]);
  return <div className="markdown">{shown}</div>;
}

/** Opening and closing tokens become nested elements. */
function build(tokens: Token[]): ReactNode[] {
  const stack: { token: Token | null; children: ReactNode[] }[] = [{ token: null, children: [] }];
  tokens.forEach((token, place) => {
    if (token.nesting === 1) return void stack.push({ token, children: [] });
    const top = stack.at(-1)!;
    if (token.nesting === -1 && stack.length > 1) {
      stack.pop();
      stack.at(-1)!.children.push(elementOf(top.token!, top.children, place));
      return;
    }
    top.children.push(leafOf(token, place));
  });
  return stack[0]!.children;
}

function elementOf(token: Token, children: ReactNode[], key: number): ReactNode {
  if (token.type === "link_open") return <SafeLink key={key} href={String(token.attrGet("href") ?? "")}>{children}</SafeLink>;
  if (token.hidden || !TAGS.has(token.tag)) return <Fragment key={key}>{children}</Fragment>;
  // A heading of a text is no heading of the page.
  if (/^h\d$/.test(token.tag)) return <p key={key} className={`markdown-heading ${token.tag}`}>{children}</p>;
  const Tag = token.tag as "p";
  return <Tag key={key}>{children}</Tag>;
}

function leafOf(token: Token, key: number): ReactNode {
  // Again: the parser has turned entities (`&#x202e;`) into characters.
  const text = plainText(token.content);
  if (token.type === "inline") return <Fragment key={key}>{build(token.children ?? [])}</Fragment>;
  if (token.type === "softbreak" || token.type === "hardbreak") return <br key={key} />;
  if (token.type === "code_inline") return <code key={key}>{text}</code>;
  if (token.type === "fence" || token.type === "code_block") {
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by keys
    return <pre key={key} className="json" tabIndex={0}><code>{text}</code></pre>;
  }
  if (token.type === "hr") return <hr key={key} />;
  if (token.type === "image") return <SafeLink key={key} href={String(token.attrGet("src") ?? "")}>{t("image", { name: text })}</SafeLink>;
  return <Fragment key={key}>{text}</Fragment>;
}

function SafeLink({ href, children }: { href: string; children: ReactNode }) {
  const host = hostOf(href);
  if (host === null) return <>{children}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
      <span className="muted small">{` (${host})`}</span>
    </a>
  );
}

/** null: not an address of the web. */
export function hostOf(href: string): string | null {
  try {
    const url = new URL(href);
    return url.protocol === "https:" || url.protocol === "http:" ? url.host : url.protocol === "mailto:" ? url.pathname : null;
  } catch {
    return null;
  }
}
