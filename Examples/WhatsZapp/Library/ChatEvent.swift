import ThicketTreesystem

/// Something that changed in the app's database, for screens and for `whatszapp watch`: what is shown is read again.
public enum ChatEvent: Sendable, Equatable {
    /// A message arrived, or changed.
    case message(Message)
    /// A message was removed.
    case removed(id: String)
    /// Messages of a person were held back, or another message was shown in the place of one; nothing that is not
    /// genuine is shown as a message.
    case alarm(String)
    /// Everything that the server had is here.
    case caughtUp
    /// Events were lost, because the reader was too slow or the store failed: everything is to be read again.
    case missed
}

extension ChatManager {
    /// What happens from now on.
    public var events: AsyncStream<ChatEvent> {
        get async throws(TreeError) {
            let tree = try await tree
            let source = await tree.events
            return AsyncStream { continuation in
                let task = Task {
                    for await event in source {
                        // A message that cannot be read now is one that the reader has to read again.
                        do throws(TreeError) {
                            if let event = try await Self.event(event, tree) { continuation.yield(event) }
                        } catch { continuation.yield(.missed) }
                    }
                    continuation.finish()
                }
                continuation.onTermination = { _ in task.cancel() }
            }
        }
    }

    private static func event(_ event: TreeEvent, _ tree: Treesystem) async throws(TreeError) -> ChatEvent? {
        switch event {
        case .discovered(let node, _), .modified(let node, _, _), .moved(let node, _, _), .pushed(let node, _):
            try await message(node.id.text, tree).map { .message($0) }
        case .delivered(let id, _): try await message(id.text, tree).map { .message($0) }
        case .deleted(let node, let path) where path.depth == (path.trunk == .inbox ? 1 : 2): .removed(id: node.id.text)
        case .integrity(let fault): .alarm("\(fault.kind.rawValue): \(fault.detail)")
        case .caughtUp: .caughtUp
        case .gap: .missed
        case .deleted, .conflict, .operationFailed: nil
        }
    }

    private static func message(_ id: String, _ tree: Treesystem) async throws(TreeError) -> Message? {
        guard let place: String = Stored.value(try await tree.value(ChatDatabase.places, id)) else { return nil }
        return Stored.value(try await tree.value(ChatDatabase.messages(place), id))
    }
}
