import ThicketCLI
import ThicketClient
import ThicketCommandLine
import ThicketTreesystem
import WhatsZapp

/// `whatszapp watch`: what happens, as lines of JSON, until Ctrl-C.
enum ChatWatch {
    private struct EventLine: Encodable {
        let event: String
        var id: String?
        var detail: String?
    }

    static func run(_ call: Call) async throws(Failure) {
        try await OpenTree.run(
            call, isOnline: true, isAboutQueue: true, place: .program("whatszapp"), by: ChatCommands.opening
        ) { (tree) throws(Failure) in
            let chat = try await ChatCommands.opened(tree).chat
            let events = try await chatting("the messages were not watched") { () throws(TreeError) in
                try await chat.events
            }
            for await event in events {
                Terminal.write(line(event))
                if Terminal.outputError != nil { return }
            }
        }
    }

    private static func line(_ event: ChatEvent) -> String {
        switch event {
        case .message(let message): ChatText.json(MessageLine(message))
        case .removed(let id): ChatText.json(EventLine(event: "removed", id: id))
        case .alarm(let detail): ChatText.json(EventLine(event: "alarm", detail: detail))
        case .caughtUp: ChatText.json(EventLine(event: "caught-up"))
        case .missed: ChatText.json(EventLine(event: "missed"))
        }
    }
}
