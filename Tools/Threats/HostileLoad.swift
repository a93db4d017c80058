import Glibc
import ThicketProcesses

/// Many simultaneous connections of the attacker: it sends the pieces of each case, reads the answers, and reports
/// answers that no input may cause. Used by one thread.
final class HostileLoad {
    /// Simultaneous connections.
    static let width = 32
    /// Milliseconds of silence, before and after an answer, until a connection is given up.
    private static let silence: Int64 = 100
    private static let pause: Int64 = 4

    /// A 5xx answer that the protocols do not require, or an error 500 in the stream.
    struct Fault {
        let number: Int
        let text: String
    }

    private final class Link {
        let input: HostileCase
        let descriptor: Int32
        var piece = 0
        var sent = 0
        var answer = [UInt8]()
        var isOver = false
        var deadline: Int64 = 0

        init(_ input: HostileCase, _ descriptor: Int32) { (self.input, self.descriptor) = (input, descriptor) }
        deinit { close(descriptor) }
        var isSent: Bool { piece == input.pieces.count }
    }

    private let port: UInt16
    private var links = [Link]()
    private var chunk = [UInt8](repeating: 0, count: 1 << 16)
    private(set) var faults = [Fault]()
    /// Answers by status; 0: no answer.
    private(set) var statuses = [Int: Int]()
    private(set) var refusedConnections = 0

    init(port: UInt16) { self.port = port }

    /// Sends a case from its own address, as soon as a place is free.
    func add(_ input: HostileCase) {
        while links.count >= Self.width { turn() }
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC | O_NONBLOCK, 0)
        // Each address may fail only a few times a minute; many addresses reach the code behind that limit.
        guard descriptor >= 0,
            Loopback.connect(descriptor, port: port, source: 0x01_0000 + UInt32(input.number) % 60_000 + 1)
        else {
            refusedConnections += 1
            close(descriptor)
            return
        }
        let link = Link(input, descriptor)
        link.deadline = Steady.milliseconds() + Self.silence
        links.append(link)
    }

    /// Waits until all cases are over.
    func finish() { while !links.isEmpty { turn() } }

    private func turn() {
        var polls = links.map { (link: Link) in
            pollfd(fd: link.descriptor, events: Int16(Int32(POLLIN) | (link.isSent ? 0 : Int32(POLLOUT))), revents: 0)
        }
        _ = poll(&polls, nfds_t(polls.count), 2)
        let now = Steady.milliseconds()
        for (link, entry) in zip(links, polls) {
            if Int32(entry.revents) & Int32(POLLOUT) != 0 { send(link, now) }
            if Int32(entry.revents) & (Int32(POLLIN) | Int32(POLLERR) | Int32(POLLHUP)) != 0 { receive(link, now) }
            if link.isOver || now >= link.deadline { end(link) }
        }
        links.removeAll(where: \.isOver)
    }

    /// Sends one piece per turn, so that the server receives them separately.
    private func send(_ link: Link, _ now: Int64) {
        guard !link.isSent else { return }
        let bytes = link.input.pieces[link.piece]
        let count = bytes.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            Glibc.send(
                link.descriptor, bytes.baseAddress?.advanced(by: link.sent), bytes.count - link.sent,
                Int32(MSG_NOSIGNAL))
        }
        if count < 0, errno != EAGAIN { link.piece = link.input.pieces.count }
        link.sent += max(0, count)
        if link.sent >= bytes.count { (link.piece, link.sent) = (link.piece + 1, 0) }
        link.deadline = now + Self.silence
    }

    private func receive(_ link: Link, _ now: Int64) {
        let count = recv(link.descriptor, &chunk, chunk.count, 0)
        if count <= 0 {
            link.isOver = count == 0 || errno != EAGAIN
        } else {
            link.answer += chunk[..<count]
            link.deadline = now + (link.isSent ? Self.pause : Self.silence)
        }
    }

    private func end(_ link: Link) {
        link.isOver = true
        if link.input.isReset {
            var hard = linger(l_onoff: 1, l_linger: 0)
            setsockopt(link.descriptor, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
        }
        judge(link)
    }

    // MARK: Checking answers

    private static let mark: [UInt8] = Array("HTTP/1.1 ".utf8)

    private func judge(_ link: Link) {
        if link.answer.isEmpty { statuses[0, default: 0] += 1 }
        link.answer.withUnsafeBytes { (bytes: UnsafeRawBufferPointer) in
            var place = 0
            while place + 12 <= bytes.count {
                guard let found = memchr(bytes.baseAddress! + place, 0x48, bytes.count - place)
                else { break }
                place = UnsafeRawPointer(found) - bytes.baseAddress!
                if bytes[place...].starts(with: Self.mark), place + 12 <= bytes.count {
                    record(bytes[(place + 9)...], link.input)
                }
                place += 1
            }
        }
        let text = String(decoding: link.answer.prefix(4_096), as: UTF8.self)
        if text.contains(#""error":500"#) { fault(link.input, "error 500 in the stream: \(text.prefix(200))") }
    }

    private func record(_ answer: Slice<UnsafeRawBufferPointer>, _ input: HostileCase) {
        guard let status = Int(String(decoding: answer.prefix(3), as: UTF8.self)) else { return }
        statuses[status, default: 0] += 1
        guard status >= 500 else { return }
        let text = String(decoding: answer.prefix(600), as: UTF8.self)
        // RFC 9110 and 9112 refuse codings and versions with 501 and 505; the texts are those of sockjs-protocol.
        let words = ["Payload expected.", "Broken JSON encoding.", "\"callback\" parameter"]
        if status == 501 || status == 505 || status == 500 && words.contains(where: text.contains) { return }
        fault(input, text)
    }

    private func fault(_ input: HostileCase, _ text: String) {
        guard faults.count < 20 else { return }
        let sent = String(decoding: input.pieces.joined().prefix(400), as: UTF8.self)
        faults.append(
            Fault(number: input.number, text: "\(input.name): \(text.debugDescription) to \(sent.debugDescription)"))
    }
}
