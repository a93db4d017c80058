import ThicketTree
package import ThicketTreeShape

/// Merges of contents that are all in memory, for simulated devices: others are refused.
package enum MemoryMerge {
    /// Does what `MergeAction.merge` asks for.
    ///
    /// - Throws: `store`.
    package static func run(
        _ id: NodeID, _ rule: MergeRule = .json, _ machine: inout TreeMachine
    ) throws(TreeError) {
        guard let task = try ContentMerges.task(id, &machine.skeleton) else { return }
        let own = task.own.compactMap { if case .content(let content) = $0.source { content } else { nil } }
        guard case .content(let base) = task.base, let theirs = task.theirContent, own.count == task.own.count,
            let merged = MergeContents(base: base, own: own, theirs: theirs, rule: rule).merged
        else { return try ContentMerges.refuse(task, &machine.skeleton) }
        let result = MergeResult(
            merged.contents.map { $0 == theirs ? .theirs : .held($0) }, lacksChanges: merged.lacksChanges)
        _ = try ContentMerges.adopt(result, of: task, &machine.skeleton)
    }
}
