public import ThicketTreeShape

/// What a reader of a processed thumbnail receives, in order.
public enum ThumbnailStage<Value: Sendable>: Sendable {
    /// What the cache has before anything is loaded: the newest value of the node, perhaps of an older version; nil
    /// when there is none.
    case before(Value?)
    /// The value of the version that was asked for; nil when there is no thumbnail. Nothing follows.
    case after(Value?)
    /// It could not be made. Nothing follows.
    case failed(ContentError)
}

/// Processed values of nodes in memory, such as decoded pictures, least recently used first out.
public actor ThumbnailCache<Value: Sendable> {
    private struct Entry {
        let value: Value?
        let version: Int64
        let cost: Int
        var used: Int64
    }

    private struct Load: Hashable {
        let node: NodeID
        let version: Int64
    }

    private let costMax: Int
    private let cost: @Sendable (Value) -> Int
    private var entries = [NodeID: Entry]()
    private var loads = [Load: [AsyncStream<ThumbnailStage<Value>>.Continuation]]()
    private var uses: Int64 = 0
    /// Cost of all values; never above the bound.
    public private(set) var totalCost = 0

    /// - Parameters:
    ///   - costMax: the bound of the total cost, for example bytes. A value above it is delivered and not kept.
    ///   - cost: of a value; a node without a thumbnail has cost 1.
    public init(costMax: Int, cost: @escaping @Sendable (Value) -> Int) {
        (self.costMax, self.cost) = (costMax, cost)
    }

    /// Number of cached nodes.
    public var count: Int { entries.count }

    /// The value of a node, in stages. Readers that ask during a load share it.
    ///
    /// - Parameters:
    ///   - node: the node.
    ///   - version: of its content.
    ///   - load: downloads and processes the thumbnail.
    public func stages(
        of node: NodeID, version: Int64, load: @escaping @Sendable () async throws(ContentError) -> Value?
    ) -> AsyncStream<ThumbnailStage<Value>> {
        let (stream, continuation) = AsyncStream.makeStream(of: ThumbnailStage<Value>.self)
        let known = cached(node)
        continuation.yield(.before(known?.value))
        if let known, known.version == version {
            continuation.yield(.after(known.value))
            continuation.finish()
            return stream
        }
        let key = Load(node: node, version: version)
        if loads[key] != nil {
            loads[key]?.append(continuation)
            return stream
        }
        loads[key] = [continuation]
        Task {
            do throws(ContentError) { finish(key, .success(try await load())) } catch { finish(key, .failure(error)) }
        }
        return stream
    }

    /// Removes the value of a node.
    public func remove(_ node: NodeID) { set(node, nil) }

    private func cached(_ node: NodeID) -> Entry? {
        uses += 1
        entries[node]?.used = uses
        return entries[node]
    }

    private func finish(_ key: Load, _ result: Result<Value?, ContentError>) {
        for reader in loads.removeValue(forKey: key) ?? [] {
            switch result {
            case .success(let value): reader.yield(.after(value))
            case .failure(let error): reader.yield(.failed(error))
            }
            reader.finish()
        }
        guard case .success(let value) = result else { return }
        // A newer version may have been loaded in the meantime.
        if let known = entries[key.node], known.version > key.version { return }
        uses += 1
        set(key.node, Entry(value: value, version: key.version, cost: max(1, value.map(cost) ?? 1), used: uses))
    }

    private func set(_ node: NodeID, _ entry: Entry?) {
        totalCost -= entries.removeValue(forKey: node)?.cost ?? 0
        guard let entry, entry.cost <= costMax else { return }
        while totalCost + entry.cost > costMax, let oldest = entries.min(by: { $0.value.used < $1.value.used }) {
            totalCost -= oldest.value.cost
            entries[oldest.key] = nil
        }
        entries[node] = entry
        totalCost += entry.cost
    }
}
