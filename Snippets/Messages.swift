import ThicketClient
import ThicketProtocol
import ThicketTreesystem

/// Sends a text with a picture: all receivers get both parts, or none of them gets anything.
func write(_ text: String, photo: String, to names: [String], in session: ClientSession) async throws {
    let (tree, people) = (try await session.tree(), try await session.people())
    // Keys that the key log proves. New ones that the old ones have not signed throw until the user confirms them.
    var receivers = Set<UserID>()
    for name in names { receivers.insert(try UserID(try await people.keys(named: name).user)) }
    // In the store when the call returns, offline too. The picture is uploaded once for all of them.
    let sent = try await tree.messages.send(
        to: receivers, content: NodeSections(data: .bytes(Array(text.utf8))),
        attachments: [(name: try NodeName("cake.jpg"), content: NodeSections(data: .file(photo)))])
    try await tree.messages.wait(for: sent)
    for delivery in try await tree.messages.deliveries(of: sent.node) { print("\(delivery.receiver) has it") }
}

/// Shows what arrives, and moves it out of the inbox: it stays the author's there, and can no longer be burned.
func read(_ session: ClientSession, into conversation: TreePath) async throws {
    let tree = try await session.tree()
    for await event in await tree.events {
        switch event {
        case .discovered(let message, let path) where path.trunk == .inbox && path.names.count == 1:
            guard let origin = message.origin, let text = try await tree.data(of: message.id) else { continue }
            print("\(origin.author), number \(origin.counter): \(String(decoding: text, as: UTF8.self))")
            if origin.missing > 0 { print("\(origin.missing) messages before it have not arrived") }
            for part in try await tree.children(of: path) { print("attached: \(part.name)") }
            try await tree.move(message.id, to: conversation.appending(message.name))
        case .integrity(let fault) where fault.kind == .origin: print("not genuine, not shown: \(fault.detail)")
        default: break
        }
    }
}
