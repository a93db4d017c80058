import Testing
import ThicketCrypto
import ThicketKeyLog
import ThicketProtocol
import ThicketTestSupport

@testable import ThicketTree
@testable import ThicketTreeShape

@Suite("Messages are sealed, opened and verified", .nonceWatch)
struct MessageTests {
    @Test("a message and its attachment open with the receiver's keys, and the author's keys verify both")
    func roundTrip() throws {
        let post = try MessageCase(seed: 41)
        let sent = try post.send("hello", attachments: ["picture"])
        let node = try post.opener.open(sent.record.sent(), sent.message.id, below: post.inbox)
        #expect(node.isFromOthers && node.id == sent.message.id && node.name.text == node.id.text)
        #expect(try node.inlineContent()?.data == Array("hello".utf8))
        let statement = try MessageCheck.statement(of: node)
        try MessageCheck.verify(node, statement, post.author.keys)
        #expect(statement == sent.statement && statement.fields.recipients == [post.receiver.user])
        let (id, record) = try #require(sent.attachments.first)
        let attachment = try post.opener.open(record.sent(), id, below: node.childKeys)
        try MessageCheck.verify(attachment: attachment, of: statement, post.author.keys)
        #expect(try attachment.inlineContent()?.data == Array("picture".utf8))
        // Neither the author's key of the node nor its record is the receiver's.
        #expect(record.commitment != sent.message.record.commitment && node.key.secret != sent.message.key.secret)
    }

    @Test("a receiver moves a message: it is sealed anew, keeps the statement, and is no longer another account's")
    func moved() throws {
        let post = try MessageCase(seed: 42)
        let sent = try post.send("hello", attachments: ["picture"])
        let node = try post.opener.open(sent.record, sent.message.id, below: post.inbox)
        let record = try post.bob.sealer.move(node, below: post.bob.home, named: NodeName(node.id.text), replacing: 1)
        #expect(record.wraps.map(\.reader) == [.parent] && record.signature == nil)
        let moved = try post.opener.open(record.sent(), node.id, below: post.bob.home)
        #expect(!moved.isFromOthers && moved.metadata.origin == sent.statement.octets)
        #expect(try MessageCheck.keptStatement(of: moved) == sent.statement)
        let (id, attachment) = try #require(sent.attachments.first)
        _ = try post.opener.open(attachment, id, below: moved.childKeys)
        let plain = try post.bob.node("own", below: post.bob.home)
        #expect(try MessageCheck.keptStatement(of: plain) == nil && !plain.isFromOthers)
    }

    @Test("A8: each flipped bit of a statement, and of what the record seals, is refused")
    func flipped() throws {
        let post = try MessageCase(seed: 43)
        let octets = try post.statement(counter: 3, previous: .of([1])).octets
        for place in 0..<octets.count * 8 {
            var other = octets
            other[place / 8] ^= 1 << UInt8(place % 8)
            guard let statement = try? OriginStatement(octets: other) else { continue }
            #expect(!statement.isSigned(by: post.author.keys), "bit \(place)")
        }
        let sent = try post.send("hello")
        #expect(post.fault(sent.record, sent.message.id) == nil)
        var random = SeededRandom(seed: 43)
        for _ in 0..<300 {
            var record = sent.record
            let bit = UInt8(1) << UInt8(random.next() % 8)
            switch random.next() % 4 {
            case 0: record.metadata[Int(random.next() % UInt64(record.metadata.count))] ^= bit
            case 1: record.commitment[Int(random.next() % 32)] ^= bit
            case 2:
                guard case .inline(let id, var sealed)? = record.data else { break }
                sealed[Int(random.next() % UInt64(sealed.count))] ^= bit
                record.data = .inline(id, sealed: sealed)
            default:
                guard let old = record.signature else { break }
                var octets = old.octets
                octets[Int(random.next() % 64)] ^= bit
                record.signature = try RecordSignature(author: old.author, keyID: old.keyID, octets: octets)
            }
            #expect(post.fault(record, sent.message.id) != nil)
        }
    }

    @Test("A8: a statement for another receiver, another node or by another author is refused")
    func forwarded() throws {
        let post = try MessageCase(seed: 44)
        let (mallory, carol) = (try MessageCase.identity("mal", seed: 9), try MessageCase.identity("carol", seed: 5))
        let sent = try post.send("hello")
        let tree = TreePlace(app: post.app, owner: carol.user)
        // Mallory seals Ann's statement for Carol, with a signature of Mallory's own.
        let part = MessagePart(copying: sent.message)
        let sealer = try MessageSealer(post.app, from: mallory, to: carol.keys, random: post.ann.random)
        let forged = try sealer.message(part, sent.statement).record
        let opener = NodeOpener(tree, identity: carol)
        let node = try opener.open(forged, part.id, below: TreeCase(seed: 1, owner: "carol").keys.parent(.inbox))
        #expect(throws: OriginFault.otherAuthor) { try MessageCheck.statement(of: node) }
        // Also Ann herself cannot give Carol a statement that names Bob alone.
        let own = try MessageSealer(post.app, from: post.author, to: carol.keys, random: post.ann.random)
        let copied = try opener.open(
            own.message(part, sent.statement).record, part.id,
            below: TreeCase(seed: 1, owner: "carol").keys.parent(.inbox))
        #expect(throws: OriginFault.notRecipient) { try MessageCheck.statement(of: copied) }
        // The same record under another id, or with another stamp, is not Ann's message.
        #expect(post.fault(sent.record, post.ann.newID()) != nil)
        var stamped = sent.record
        stamped.stamps.sender = mallory.user
        #expect(post.fault(stamped, sent.message.id) as? OriginFault == .otherSender)
        stamped.stamps.sender = post.author.user
        #expect(post.fault(stamped, sent.message.id) == nil)
        #expect(post.fault(sent.record, sent.message.id, mallory.keys) as? OriginFault == .badStatement)
    }

    @Test("A8: an attachment that is not listed, of another author or with another content is refused")
    func attachments() throws {
        let post = try MessageCase(seed: 45)
        let unlisted = try post.send("hello", attachments: ["picture"], listing: false)
        let node = try post.opener.open(unlisted.record, unlisted.message.id, below: post.inbox)
        let attached = try post.opener.open(
            unlisted.attachments[0].record, unlisted.attachments[0].id, below: node.childKeys)
        #expect(throws: OriginFault.otherNode) {
            try MessageCheck.verify(attachment: attached, of: unlisted.statement, post.author.keys)
        }
        let sent = try post.send("hello", attachments: ["picture"])
        let message = try post.opener.open(sent.record, sent.message.id, below: post.inbox)
        let id = sent.attachments[0].id
        let sealer = try MessageSealer(post.app, from: post.author, to: post.receiver.keys, random: post.ann.random)
        let other = try post.ann.node("other", below: post.ann.home, content: .inline(NodeContent(data: [1])))
        let part = MessagePart(
            copying: OpenedNode(
                tree: other.tree, id: id, record: other.record, metadata: other.metadata, key: other.key))
        let record = try sealer.attachment(part, below: message.childKeys)
        let swapped = try post.opener.open(record, id, below: message.childKeys)
        #expect(throws: OriginFault.otherContent) {
            try MessageCheck.verify(attachment: swapped, of: sent.statement, post.author.keys)
        }
    }

    @Test("a statement has the author's login name, of at most 254 bytes, under the signature")
    func name() throws {
        let world = try MessageCase(seed: 47)
        var fields = world.fields()
        for (name, isRight) in [(nil, true), ("ann", true), (String(repeating: "é", count: 127), true), ("", false)] {
            fields.name = name
            let statement = try? OriginStatement(fields, from: world.author)
            #expect((statement != nil) == isRight, "\(name ?? "none")")
            guard let statement else { continue }
            #expect(try OriginStatement(octets: statement.octets).fields.name == name)
            #expect(statement.isSigned(by: world.author.keys))
        }
        fields.name = String(repeating: "a", count: 255)
        #expect(throws: OriginFault.outOfBounds) { try OriginStatement(fields, from: world.author) }
        fields.name = "ann"
        var octets = try OriginStatement(fields, from: world.author).octets
        let place = try #require(octets.indices.reversed().first { octets[$0...].starts(with: Array("ann".utf8)) })
        octets[place] = UInt8(ascii: "b")
        #expect(try !OriginStatement(octets: octets).isSigned(by: world.author.keys), "another name is not signed")
    }

    @Test("a statement has bounds, and one form")
    func bounds() throws {
        let post = try MessageCase(seed: 46)
        let users = Set(try (0..<257).map { try UserID("user-\($0)") })
        func made(_ fields: OriginStatement.Fields) -> OriginFault? {
            do throws(OriginFault) {
                let statement = try OriginStatement(fields, from: post.author)
                return try OriginStatement(octets: statement.octets) == statement ? nil : .malformed
            } catch { return error }
        }
        #expect(made(post.fields(to: Set(users.prefix(256)))) == nil)
        #expect(made(post.fields(to: users)) == .outOfBounds && made(post.fields(to: [])) == .outOfBounds)
        #expect(made(post.fields(to: [post.author.user])) == .outOfBounds)
        #expect(made(post.fields(counter: 0)) == .outOfBounds && made(post.fields(counter: 2)) == .outOfBounds)
        #expect(made(post.fields(counter: 1 << 53, previous: .of([1]))) == .outOfBounds)
        let nodes = (0..<64).map { _ in OriginNode(post.ann.newID(), nil) }
        #expect(made(post.fields(attachments: Array(nodes.prefix(63)))) == nil)
        #expect(made(post.fields(attachments: nodes)) == .outOfBounds)
        let long = Set(try (0..<60).map { try UserID("\($0)" + String(repeating: "x", count: 240)) })
        #expect(made(post.fields(to: long)) == .tooLarge)
        #expect(throws: OriginFault.tooLarge) { try OriginStatement(octets: [UInt8](repeating: 0, count: 12_289)) }
        var swapped = try OriginStatement(post.fields(attachments: Array(nodes.prefix(2))), from: post.author).octets
        swapped.append(0)
        #expect(throws: OriginFault.malformed) { try OriginStatement(octets: swapped) }
        let both = ConversationID(app: post.app, participants: [post.receiver.user, post.author.user])
        #expect(both == post.conversation && ConversationID(octets: both.octets) == both)
        #expect(ConversationID(app: post.app, participants: [post.author.user]) != both)
    }

    @Test("without the receiver's key, or with another one, a message does not open")
    func receiversOnly() throws {
        let post = try MessageCase(seed: 47)
        let sent = try post.send("hello")
        for identity in [nil, try MessageCase.identity("bob", seed: 3)] {
            let opener = NodeOpener(post.bob.tree, identity: identity)
            #expect(throws: NodeFault.self) { try opener.open(sent.record, sent.message.id, below: post.inbox) }
        }
        let other = TreePlace(app: try AppID("other"), owner: post.receiver.user)
        #expect(throws: NodeFault.self) {
            try NodeOpener(other, identity: post.receiver).open(sent.record, sent.message.id, below: post.inbox)
        }
    }
}
