import ThicketPlatform
import ThicketProtocol

/// A first-in, first-out queue of keys, each at most once.
struct KeyQueue {
    private var keys = Deque<EntityKey>()
    private var members = Set<EntityKey>()

    var isEmpty: Bool { members.isEmpty }
    var count: Int { members.count }

    mutating func append(_ key: EntityKey) {
        guard members.insert(key).inserted else { return }
        keys.append(key)
    }

    mutating func popFirst() -> EntityKey? {
        guard let key = keys.popFirst() else { return nil }
        members.remove(key)
        return key
    }

    mutating func removeAll() { self = KeyQueue() }
}
