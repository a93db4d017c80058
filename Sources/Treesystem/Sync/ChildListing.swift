import ThicketClient
import ThicketProtocol
package import ThicketTreeShape

/// The lists of children that a device with a lazy skeleton reads, one request at a time. Pure.
package struct ChildListing: Sendable {
    /// A list that is read: from which place on, and how far below the trunks its nodes are.
    struct Task: Sendable, Equatable {
        let parent: NodeParent
        var before: String?
        /// Levels below the parent that are read too; nil: none.
        var levels: Int?
        fileprivate var cursors = CursorCheck()

        init(parent: NodeParent, levels: Int? = nil) { (self.parent, self.levels) = (parent, levels) }
    }

    private var waiting = [Task]()
    private(set) var inFlight: (number: Int64, tasks: [Task])?
    /// Parents whose lists are not complete yet. Changes of their children are applied as if they were.
    private(set) var parents = Set<NodeParent>()
    /// Nodes that were removed since the request in flight was made: its page may still have them.
    private(set) var removed = [NodeID: Version]()
    /// Most entries of `removed`; with more, the request in flight is made again, and its new page is newer than these.
    static let removedMax = 10_000
    /// No request is made before this time.
    var retryAt: Int64?
    var backoff = Backoff(shortest: SyncLimits.retryMinMilliseconds, longest: SyncLimits.backoffMaxMilliseconds)
    private var counter: Int64 = 0

    init() {}

    /// Nothing is read yet. Answers to earlier requests are not awaited; what the app has asked for stays asked for.
    init(after earlier: ChildListing) {
        counter = earlier.counter
        for task in (earlier.inFlight?.tasks ?? []) + earlier.waiting { add(task.parent) }
    }

    package var isIdle: Bool { waiting.isEmpty && inFlight == nil }

    func contains(_ parent: NodeParent) -> Bool { parents.contains(parent) }

    mutating func add(_ parent: NodeParent, levels: Int? = nil) {
        guard parents.insert(parent).inserted else { return }
        waiting.append(Task(parent: parent, levels: levels))
    }

    /// What the app opens is read before the levels of a first reading, which are read from the top down.
    mutating func prefer(_ parent: NodeParent) {
        var task = Task(parent: parent)
        if let place = waiting.firstIndex(where: { $0.parent == parent }) {
            task = waiting.remove(at: place)
        } else if !parents.insert(parent).inserted {
            return
        }
        waiting.insert(task, at: 0)
    }

    /// The next request: the next page of one list, or the first pages of many, in the order in which they were asked
    /// for.
    mutating func next(at now: Int64) -> (number: Int64, query: ChildrenQuery)? {
        guard inFlight == nil, retryAt.map({ $0 <= now }) ?? true, let first = waiting.first else { return nil }
        retryAt = nil
        let tasks =
            first.before == nil
            ? Array(waiting.prefix(TreeLimits.childrenParentsMax).prefix { $0.before == nil }) : [first]
        waiting.removeFirst(tasks.count)
        counter += 1
        (inFlight, removed) = ((counter, tasks), [:])
        return (
            counter,
            ChildrenQuery(
                of: tasks.map(\.parent), limit: TreeLimits.childrenMax / tasks.count, order: .tag, before: first.before)
        )
    }

    /// The request with this number is over.
    ///
    /// - Returns: nil for one that is not awaited.
    mutating func finish(_ number: Int64) -> [Task]? {
        guard let request = inFlight, request.number == number else { return nil }
        inFlight = nil
        return request.tasks
    }

    /// The same lists again.
    mutating func again(_ tasks: [Task]) { waiting.insert(contentsOf: tasks, at: 0) }

    /// Goes on with a list before others begin.
    ///
    /// - Returns: false if its pages lead in a circle. It begins again then: what it did not show is not absent.
    mutating func goOn(_ task: Task, before: String) -> Bool {
        var task = task
        guard !task.cursors.isRepeated(before) else {
            again([Task(parent: task.parent, levels: task.levels)])
            return false
        }
        task.before = before
        waiting.insert(task, at: 0)
        return true
    }

    mutating func complete(_ parent: NodeParent) { parents.remove(parent) }

    /// The log has removed a node.
    mutating func addRemoval(_ id: NodeID, _ version: Version) {
        guard inFlight != nil else { return }
        if removed.count >= Self.removedMax { return forgetRequest() }
        removed[id] = version
    }

    /// The request in flight is not awaited any more; it is made again.
    mutating func forgetRequest() {
        guard let request = inFlight else { return }
        (inFlight, removed) = (nil, [:])
        again(request.tasks)
    }
}

/// The answer to a request for lists of children, or its failure.
package enum ChildrenReply: Sendable, Equatable {
    case page(ChildrenPage)
    /// The pause in milliseconds is what the server asked for.
    case failed(String, retryAfter: Int64)
    case unauthorized
}
