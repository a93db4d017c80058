import Testing
import ThicketProtocol
import ThicketTreesystem

@testable import WhatsZapp

/// Names of conversations.
@Suite("WhatsZapp: names of conversations")
struct ConversationNameTests {
    @Test("accounts whose ids differ in case, or in bytes that look alike, have conversations of different names")
    func different() throws {
        let ids = [
            "ann", "Ann", "ANN", "a%6e%6e", "é", "e\u{301}", "ann@example.com", "x/y", "%41nn", "ſ", "s", "ⅰ", "i",
        ]
        let names = try ids.map { try ConversationName.of(try UserID($0)) }
        for (place, name) in names.enumerated() {
            #expect(ConversationName.person(name)?.text.utf8.elementsEqual(ids[place].utf8) == true, "\(ids[place])")
            for other in names[(place + 1)...] { #expect(!name.isSame(as: other), "\(name) and \(other)") }
        }
    }

    @Test(
        "other names are no conversations",
        arguments: [
            "ann", "chat", "chat ", "chat Ann", "chat a b", "chat %4", "chat %zz", "chat %61nn", "chat %c3", "chat %",
        ])
    func foreign(name: String) throws { #expect(ConversationName.person(try NodeName(name)) == nil) }

    @Test("a node that got a number, because another one has its name, belongs to the same conversation")
    func numbered() throws {
        #expect(ConversationName.person(try NodeName("chat ann 2"))?.text == "ann")
        #expect(ConversationName.person(try NodeName("chat ann 2 3")) == nil)
    }

    @Test("an id whose name would be too long is refused")
    func long() throws {
        #expect(try ConversationName.of(UserID(String(repeating: "a", count: 250))).text.count == 255)
        #expect(throws: TreeError.self) { try ConversationName.of(try UserID(String(repeating: "a", count: 251))) }
        #expect(throws: TreeError.self) { try ConversationName.of(try UserID(String(repeating: "Ä", count: 43))) }
    }
}
