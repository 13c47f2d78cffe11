/** One failed panel leaves the rest usable. */
import { Component, type ReactNode } from "react";
import { BrokenPart } from "./Problem";

type State = { error: unknown; key: string | undefined };

export class Boundary extends Component<{ children: ReactNode; resetKey?: string }, State> {
  override state: State = { error: null, key: this.props.resetKey };

  static getDerivedStateFromError(error: unknown): Partial<State> {
    return { error };
  }

  /** Another address tries again. */
  static getDerivedStateFromProps(props: { resetKey?: string }, state: State): Partial<State> | null {
    return props.resetKey === state.key ? null : { error: null, key: props.resetKey };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return <BrokenPart error={this.state.error} reset={() => this.setState({ error: null })} />;
  }
}
