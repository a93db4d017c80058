import ThicketTreeShape

@testable import ThicketTreesystem

/// What a link, or a server that lies about the order of its answers, does to one answer.
enum LinkHarm: CaseIterable {
    /// The answer to a request is lost. A socket loses nothing in its middle: a lost message ends the connection.
    case lost
    /// The answer arrives twice.
    case repeated
    /// The answer arrives 7 s later, after timers of the device.
    case late
    /// What comes behind the answer overtakes it.
    case overtaken

    /// Harms the first answer that waits.
    func apply(
        _ replies: inout [(id: BatchID, reply: BatchReply)], _ pages: inout [(number: Int64, reply: ChildrenReply)],
        _ texts: inout [[UInt8]], _ late: inout LateAnswers, now: Int64
    ) {
        late.due = now + (self == .late ? 7_000 : 0)
        if let reply = replies.first {
            switch self {
            case .lost: replies[0].reply = .unknown("the answer was lost", retryAfter: 0)
            case .repeated: replies.insert(reply, at: 0)
            case .late, .overtaken: late.replies.append(replies.removeFirst())
            }
        } else if let page = pages.first {
            switch self {
            case .lost: pages[0].reply = .failed("the answer was lost", retryAfter: 0)
            case .repeated: pages.insert(page, at: 0)
            case .late, .overtaken: late.pages.append(pages.removeFirst())
            }
        } else if let text = texts.first {
            switch self {
            case .lost: break
            case .repeated: texts.insert(text, at: 0)
            // The messages of a socket stay in their order: all of them are late.
            case .late: (late.texts, texts) = (texts, [])
            case .overtaken where texts.count > 1: texts.swapAt(0, 1)
            case .overtaken: break
            }
        }
    }
}

/// Answers that are on their way longer than others.
struct LateAnswers {
    var due: Int64 = 0
    var replies = [(id: BatchID, reply: BatchReply)]()
    var pages = [(number: Int64, reply: ChildrenReply)]()
    var texts = [[UInt8]]()

    var isEmpty: Bool { replies.isEmpty && pages.isEmpty && texts.isEmpty }
}
