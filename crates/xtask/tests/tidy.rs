//! Applies the rules of the tree to the tree itself.

use slipway_xtask::command_line::workspace_root;
use slipway_xtask::tidy::{Tree, check};

#[test]
fn the_tree_is_tidy() {
    let tree = Tree::read(&workspace_root().expect("the workspace")).expect("a readable tree");
    let findings = check(&tree);
    assert!(findings.median_lines > 0, "no source file was looked at");
    assert!(findings.wrong.is_empty(), "\n{}\n", findings.wrong.join("\n"));
}
