import Glibc
public import ThicketProtocol
public import ThicketTreesystem

/// What this account writes.
extension ChatManager {
    /// A file that goes with a message.
    public struct File: Sendable {
        /// The name that the other person sees.
        public let name: NodeName
        /// The path of the file. It is sealed when `send` returns: what happens to it later changes nothing.
        public let path: String
        /// A small picture of it, made by the app; nil: none.
        public let thumbnail: [UInt8]?

        /// Describes a file.
        public init(name: NodeName, path: String, thumbnail: [UInt8]? = nil) {
            (self.name, self.path, self.thumbnail) = (name, path, thumbnail)
        }
    }

    /// Sends a text, with files. It is in the conversation when the call returns; `state` of the message says when the
    /// other person has it. Messages of one conversation arrive in their order, and a message with its files at once.
    ///
    /// - Parameter files: with names that differ; at most 63.
    /// - Throws: `content` for a text that does not fit into 7,900 bytes of JSON, and for a file that cannot be read;
    ///   `nameTaken` for two files of one name; `receiver` for the own account; `limit`, `store`, `closed`.
    @discardableResult
    public func send(_ text: String, to person: UserID, files: [File] = []) async throws(TreeError) -> Message {
        let time = Self.now
        let content = MessageContent(text: text, sent: time).bytes
        guard content.count <= MessageContent.bytesMax else {
            throw TreeError(
                .content, "a message has at most \(MessageContent.bytesMax) bytes; send a longer text as a file")
        }
        guard person != me else { throw TreeError(.receiver, "a message goes to another account") }
        let name = try Self.name(NodeID.random().text)
        let (tree, tags) = (try await tree, try marks(isDraft: !files.isEmpty))
        let (draft, path) = try await tree.batch { editor throws(TreeError) in
            let path = try Self.makeNode(of: person, &editor).appending(name)
            let node = try editor.createNode(at: path, content: NodeSections(data: .bytes(content)), tags: tags)
            let message = try ChatDatabase.insert(
                Message(
                    id: node.id.text, conversation: person.text, isMine: true, text: text, sent: time, order: time,
                    counter: 0, state: .draft, isRead: true), &editor)
            return files.isEmpty ? (try self.copy(message, to: person, [], &editor), path) : (message, path)
        }
        if files.isEmpty { return draft }
        do throws(TreeError) {
            var attachments = [Attachment]()
            for file in files { attachments.append(try await Self.attach(file, below: path, tree)) }
            let all = attachments
            return try await tree.batch { editor throws(TreeError) in
                try self.copy(draft, to: person, all, &editor)
            }
        } catch {
            // Nothing of it was sent.
            try await remove(draft)
            throw error
        }
    }

    private static func attach(
        _ file: File, below message: TreePath, _ tree: Treesystem
    ) async throws(TreeError) -> Attachment {
        let sections = NodeSections(
            metadata: .bytes([]), thumbnail: .bytes(file.thumbnail ?? []), data: .file(file.path))
        let node = try await tree.createNode(at: message.appending(file.name), content: sections)
        var bytes = stat()
        let size = stat(file.path, &bytes) == 0 ? Int64(bytes.st_size) : 0
        return Attachment(
            id: node.id.text, name: file.name.text, bytes: size, hasThumbnail: file.thumbnail?.isEmpty == false)
    }

    /// The server makes the copy: text and files are uploaded once, for this account and for the other person.
    private func copy(
        _ draft: Message, to person: UserID, _ attachments: [Attachment], _ editor: inout TreeEditor
    ) throws(TreeError) -> Message {
        guard let id = NodeID(text: draft.id), var conversation = try ChatDatabase.conversation(person.text, editor)
        else { throw TreeError(.notFound, "the message was removed") }
        let earlier = conversation.lastSent.map { OperationID($0) }
        // Other devices show it as a draft until the copy is on its way.
        if !attachments.isEmpty { try editor.setTags(of: id, try marks(isDraft: false)) }
        let copies = try editor.copy(id, toInboxOf: [person], after: earlier.map { [$0] } ?? [])
        conversation.lastSent = copies.first?.number
        try ChatDatabase.set(conversation, &editor)
        try editor.set([], ChatDatabase.outgoing, draft.id)
        let sent = try ChatDatabase.change(draft.id, &editor) {
            $0.state = .queued
            for attachment in attachments { $0.attach(attachment) }
        }
        guard let sent else { throw TreeError(.notFound, "the message was removed") }
        return sent
    }

    /// The pairs of an own message: its author, as that of a message which was moved, and whether files are missing.
    private func marks(isDraft: Bool) throws(TreeError) -> [NodeMetadata.AppTag] {
        [
            NodeMetadata.AppTag(Self.authorTag, Array(me.text.utf8)),
            isDraft ? NodeMetadata.AppTag(Self.draftTag, []) : nil,
        ]
        .compactMap { $0 }
    }

    static let draftTag = "draft"

    // MARK: - What the server refuses

    /// Looks at the messages of this device that the server does not have yet, and marks those as failed that are not
    /// sent: the server refuses them, for example because their receiver accepts no messages of this account, or another
    /// device has removed them before. Their texts stay in the conversation until they are removed.
    ///
    /// - Returns: the messages that failed.
    @discardableResult
    public func reviewOutgoing() async throws(TreeError) -> [Message] {
        let tree = try await tree
        var failed = [Message]()
        for row in try await tree.page(of: ChatDatabase.outgoing, limit: Treesystem.childrenMax) {
            guard let id = NodeID(text: row.key), try await isOver(id, tree) else { continue }
            let message = try await tree.batch { editor throws(TreeError) in
                try editor.set(nil, ChatDatabase.outgoing, row.key)
                return try ChatDatabase.change(row.key, &editor) { $0.state = .failed }
            }
            if let message { failed.append(message) }
        }
        return failed
    }

    /// Whether a message is not delivered, and will not be. A copy that failed is given up: later messages wait for it.
    private func isOver(_ id: NodeID, _ tree: Treesystem) async throws(TreeError) -> Bool {
        var (isWaiting, isRefused) = (false, false)
        for operation in try await tree.operations(of: id) {
            switch (operation.state, operation.kind) {
            case (.removedElsewhere, _), (.failed, .copy): break
            // What makes the node has the text: it stays in the queue, and the copy behind it.
            case (.failed, _):
                isRefused = true
                continue
            default:
                isWaiting = true
                continue
            }
            do throws(TreeError) { try await tree.discard(operation.id) } catch {
                switch error.code {
                // An earlier one took it along.
                case .notFound: continue
                // It is being sent.
                case .limit: isWaiting = true
                default: throw error
                }
            }
        }
        if isRefused || isWaiting { return isRefused }
        return try await !tree.messages.deliveries(of: id).contains { $0.delivered != nil }
    }
}
