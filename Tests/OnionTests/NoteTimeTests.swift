import Testing
import ThicketOnions
import ThicketProtocol

@Suite("Creation time of notes")
struct NoteTimeTests {
    @Test(
        "numbers and the old server's texts are read as milliseconds since 1970, anything else is nil",
        arguments: [
            ("1384676130250", 1_384_676_130_250), (#""2013-11-17T08:15:30.250Z""#, 1_384_676_130_250),
            (#""1970-01-01T00:00:00.000Z""#, 0), (#""2000-02-29T23:59:59.999Z""#, 951_868_799_999),
            (#""2024-03-01T00:00:00.000Z""#, 1_709_251_200_000), (#""2013-11-17 08:15:30.250Z""#, nil),
            (#""2013-13-17T08:15:30.250Z""#, nil), (#""2013-11-17T08:15:30Z""#, nil), ("null", nil), ("1.5", nil),
        ] as [(String, Int64?)])
    func times(text: String, milliseconds: Int64?) throws {
        #expect(NoteTime.milliseconds(try JSONValue(parsing: Array(text.utf8))) == milliseconds)
    }
}
