import ThicketTree
import ThicketTreeShape

/// Merges of contents, outside of the tree's transactions.
enum MergeJob {
    /// Reads the base of a node's waiting content from its file, which the cache may lose later.
    static func keepBase(of node: NodeID, _ tree: isolated Treesystem) {
        Task { [weak tree] in
            guard let tree else { return }
            await keepBase(node, tree)
        }
    }

    private static func keepBase(_ node: NodeID, _ tree: isolated Treesystem) async {
        let base = (try? tree.core?.machine.store.base(of: node)) ?? nil
        guard let base, let plan = base.plan, let content = try? await read(plan, tree) else { return }
        tree.feed { machine throws(TreeError) in
            try ContentMerges.keep(content, base.data, of: node, &machine.skeleton)
        }
    }

    static func merge(_ node: NodeID, _ tree: isolated Treesystem) {
        Task { [weak tree] in
            guard let tree else { return }
            await merge(node, tree)
        }
    }

    private static func merge(_ node: NodeID, _ tree: isolated Treesystem) async {
        do throws(TreeError) {
            let task = try tree.read { machine throws(TreeError) in try ContentMerges.task(node, &machine.skeleton) }
            guard let task else { return }
            let rule = tree.delegate?.mergeRule(for: task.node, at: task.path) ?? .json
            guard let contents = try await contents(of: task, rule, tree), let merged = await merged(contents) else {
                return tree.feed { machine throws(TreeError) in try ContentMerges.refuse(task, &machine.skeleton) }
            }
            await adopt(try await result(merged, contents, task, tree), task, tree)
        } catch {
            tree.feed { machine throws(TreeError) in ContentMerges.postpone(node, &machine.skeleton) }
        }
    }

    /// - Returns: nil when one is nowhere, or the rule merges none.
    /// - Throws: when the other device's content cannot be downloaded for now.
    private static func contents(
        of task: MergeTask, _ rule: MergeRule, _ tree: isolated Treesystem
    ) async throws(TreeError) -> MergeContents? {
        guard rule.merge != nil, let base = try await content(task.base, tree) else { return nil }
        var own = [NodeContent]()
        for each in task.own {
            guard let content = try await content(each.source, tree) else { return nil }
            own.append(content)
        }
        guard let theirs = try await theirs(task, tree) else { return nil }
        return MergeContents(base: base, own: own, theirs: theirs, rule: rule)
    }

    /// The other device's content, which is downloaded if it is in a blob.
    private static func theirs(
        _ task: MergeTask, _ tree: isolated Treesystem
    ) async throws(TreeError) -> NodeContent? {
        if let content = task.theirContent { return content }
        do throws(TreeError) {
            let id = task.node.id
            return NodeContent(
                metadata: try await tree.confirmedData(of: id, .metadata) ?? [],
                thumbnail: try await tree.confirmedData(of: id, .thumbnail) ?? [],
                data: try await tree.confirmedData(of: id, .data) ?? [])
        } catch {
            switch error.code {
            case .contentDamaged, .contentMismatch, .contentLost, .refused: return nil
            default: throw error
            }
        }
    }

    /// - Returns: nil for a content that is nowhere.
    private static func content(
        _ source: MergeTask.Source, _ tree: isolated Treesystem
    ) async throws(TreeError) -> NodeContent? {
        switch source {
        case .content(let content): content
        case .sealed(let plan): try await read(plan, tree)
        case .none: nil
        }
    }

    private static func read(
        _ plan: ContentSpool, _ tree: isolated Treesystem
    ) async throws(TreeError) -> NodeContent? {
        guard let disk = tree.core?.contents.disk else { throw .closed }
        guard plan.map.sizes.length <= UInt64(MergeLimits.contentBytesMax),
            let kept = await disk.spooled(plan.id, key: plan.key, map: plan.map)
        else { return nil }
        return try? NodeContent(
            metadata: kept.file.read(.metadata), thumbnail: kept.file.read(.thumbnail), data: kept.file.read(.data))
    }

    /// Not on the tree's thread: a rule of the app may last.
    @concurrent
    private static func merged(_ contents: MergeContents) async -> MergedContents? { contents.merged }

    /// Seals what does not fit into the record.
    private static func result(
        _ merged: MergedContents, _ all: MergeContents, _ task: MergeTask, _ tree: isolated Treesystem
    ) async throws(TreeError) -> MergeResult {
        guard let disk = tree.core?.contents.disk else { throw .closed }
        var contents = [MergeResult.Content]()
        for content in merged.contents {
            if content == all.theirs {
                contents.append(.theirs)
                continue
            }
            let sections = NodeSections(
                metadata: .bytes(content.metadata), thumbnail: .bytes(content.thumbnail), data: .bytes(content.data))
            do throws(ContentError) {
                switch try await disk.spool(sections, node: task.node.id) {
                case .none: contents.append(.held(content))
                case .inline(let content): contents.append(.held(content))
                case .blob(let blob): contents.append(.spooled(SpoolRecord(blob.plan)))
                }
            } catch { throw TreeError(error) }
        }
        return MergeResult(contents, lacksChanges: merged.lacksChanges)
    }

    private static func adopt(_ result: MergeResult, _ task: MergeTask, _ tree: isolated Treesystem) async {
        tree.feed { machine throws(TreeError) in
            _ = try ContentMerges.adopt(result, of: task, &machine.skeleton)
        }
        for (own, content) in zip(task.own, result.contents) {
            guard case .spooled(let record) = content else { continue }
            let waiting = (try? tree.core?.machine.store.plan(of: own.operation)) ?? nil
            if waiting?.plan.id == record.plan.id {
                tree.spools[own.operation] = record
            } else {
                // Not adopted. A file that stays is found at the next start.
                try? await tree.core?.contents.disk.remove(record.plan.id)
            }
        }
    }
}
